import { DELIVERY_MARK } from "../../protocol/link.ts";
import type { BuiltMessage, ImagePart, Meta, TextPart } from "../../protocol/link-context.ts";
import { isRecord } from "../../protocol/objects.ts";
import {
  CONTEXT_EVENT_TYPE,
  type ContextCall,
  type ContextItem,
  type ContextPart,
  type ContextTarget,
} from "./document.ts";
import { isModel } from "./ids.ts";
import { isSummary, type NativeEvent, nativeEventOf, plainText } from "./native-event.ts";
import type { ContextOptions } from "./options.ts";
import { decodedBytes } from "./read-parts.ts";
import { isSoundBlock } from "./sound-block.ts";

export type BuildOptions = Pick<ContextOptions, "systemNodes" | "events">;

/** pi messages, one for each included item except those of the role `system`. */
export interface Built {
  readonly messages: readonly BuiltMessage[];
  /** Texts of the `system` items in order, separated by an empty line. Absent if there are none. */
  readonly instructions?: string;
}

/**
 * Builds messages for a model from repaired items (`repairItems`). Deterministic: the same items give the same bytes.
 * Usage is zero, because pi would add it to the session's cost.
 */
export function buildMessages(items: readonly ContextItem[], target: ContextTarget, options: BuildOptions = {}): Built {
  const kept = chosenItems(items, options);
  const instructions = kept
    .filter(({ role }) => role === "system")
    .map(textOf)
    .filter((text) => text !== "")
    .join("\n\n");
  const messages = kept.flatMap((item) => (item.role === "system" ? [] : [buildMessage(item, target)]));
  return { messages, ...(instructions === "" ? {} : { instructions }) };
}

/** Removes the items that the options exclude. */
export function chosenItems(items: readonly ContextItem[], options: BuildOptions): readonly ContextItem[] {
  const { systemNodes = "section", events = "include" } = options;
  return items.filter((item) => {
    if (item.role === "system") return systemNodes === "section";
    return item.role !== "event" || events === "include" || isSummary(item);
  });
}

function buildMessage(item: ContextItem, target: ContextTarget): BuiltMessage {
  const { timestamp } = item;
  switch (item.role) {
    case "assistant":
      return buildAssistant(item, target);
    case "toolResult":
      return {
        role: "toolResult",
        toolCallId: item.toolCallId ?? "",
        toolName: item.toolName ?? "",
        content: visibleParts(item),
        ...(item.details === undefined ? {} : { details: item.details }),
        isError: item.isError === true,
        timestamp,
      };
    case "event":
      return buildEvent(item);
    default:
      return { role: "user", content: visibleParts(item), timestamp };
  }
}

function buildAssistant(item: ContextItem, target: ContextTarget): BuiltMessage {
  const content = assistantContent(item, target);
  const { api, provider, id } = item.model ?? target;
  const hasCalls = content.some(({ type }) => type === "toolCall");
  return {
    role: "assistant",
    content,
    api,
    provider,
    model: id,
    usage: noUsage,
    stopReason: hasCalls ? "toolUse" : "stop",
    timestamp: item.timestamp,
  };
}

const noUsage = {
  input: 0,
  output: 0,
  cacheRead: 0,
  cacheWrite: 0,
  totalTokens: 0,
  cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 },
} as const;

/**
 * Converts an event to pi's own message if it represents one, otherwise to a custom message with the event's name in
 * the first line.
 */
export function buildEvent(item: ContextItem): BuiltMessage {
  const native = nativeEventOf(item);
  if (native !== undefined) return buildNative(item, native);
  const { eventType, meta, timestamp } = item;
  const [first, ...rest] = visibleParts(item);
  const name = (eventType ?? "").replace(lineBreaks, " ").trim().toWellFormed();
  const line = `Event: ${name === "" ? "unnamed" : name}`;
  const head: TextPart = { type: "text", text: first?.type === "text" ? `${line}\n${first.text}` : line };
  return {
    role: "custom",
    customType: CONTEXT_EVENT_TYPE,
    content: [head, ...(first?.type === "image" ? [first] : []), ...rest],
    display: true,
    details: { ...(eventType === undefined ? {} : { eventType }), ...(meta === undefined ? {} : { meta }) },
    timestamp,
  };
}

const lineBreaks = /[\n\v\f\r\u0085\u2028\u2029]+/g;

function buildNative(item: ContextItem, native: NativeEvent): BuiltMessage {
  const { timestamp } = item;
  switch (native.type) {
    case "compaction":
      return { role: "compactionSummary", summary: textOf(item), tokensBefore: native.tokensBefore, timestamp };
    case "branch_summary":
      return { role: "branchSummary", summary: textOf(item), fromId: native.fromId, timestamp };
    case "bashExecution": {
      const { type: _, command, exitCode, ...rest } = native;
      return {
        role: "bashExecution",
        command: command.toWellFormed(),
        output: textOf(item),
        exitCode,
        ...rest,
        timestamp,
      };
    }
    case "custom_message": {
      const { customType, display } = native;
      const details = withoutMark(native.details);
      const content = visibleParts(item);
      return { role: "custom", customType, content, display, ...(details === undefined ? {} : { details }), timestamp };
    }
  }
}

/** Removes the delivery mark of another session, which this session would mistake for its own. */
function withoutMark(details: unknown): unknown {
  if (!isRecord(details) || !Object.hasOwn(details, DELIVERY_MARK)) return details;
  const { [DELIVERY_MARK]: _, ...rest } = details;
  return rest;
}

/** Removes empty parts, which some services refuse, and reasoning, which only an assistant can have. */
function visibleParts(item: ContextItem): readonly (TextPart | ImagePart)[] {
  return item.content.flatMap((part): readonly (TextPart | ImagePart)[] => {
    if (part.type === "text") return part.text === "" ? [] : [{ type: "text", text: part.text }];
    return part.type === "image" ? [{ type: "image", data: part.data, mimeType: part.mimeType }] : [];
  });
}

function textOf(item: ContextItem): string {
  return plainText(item) ?? item.content.map((part) => (part.type === "text" ? part.text : "")).join("");
}

/**
 * Builds an assistant's content for pi: the item's own blocks if they are valid and for the target, otherwise blocks
 * made from the parts.
 */
function assistantContent(item: ContextItem, target: ContextTarget): readonly Meta[] {
  const isOfTarget = isModel(item.model, target);
  const blocks = isOfTarget ? ownBlocks(item) : undefined;
  if (blocks !== undefined) return blocks;
  const parts = item.content.flatMap((part) => partBlock(part, isOfTarget));
  const calls = (item.toolCalls ?? []).map(callBlock);
  return [...parts, ...calls];
}

function callBlock({ id, name, arguments: args }: ContextCall): Meta {
  return { type: "toolCall", id, name, arguments: args };
}

function partBlock(part: ContextPart, isOfTarget: boolean): readonly Meta[] {
  if (part.type === "text") return part.text === "" ? [] : [{ type: "text", text: part.text }];
  if (part.type === "image") return [{ type: "text", text: `[${part.mimeType} of ${decodedBytes(part.data)} bytes]` }];
  if (!isOfTarget) return [];
  const { text, signature, redacted } = part;
  return [
    {
      type: "thinking",
      thinking: text,
      ...(signature === undefined ? {} : { thinkingSignature: signature }),
      ...(redacted === undefined ? {} : { redacted }),
    },
  ];
}

/**
 * Returns the item's own blocks with the current names of the calls; `undefined` if there are none, if one is not valid
 * for pi, or if their calls differ from the item's.
 */
function ownBlocks(item: ContextItem): readonly Meta[] | undefined {
  if (item.blocks === undefined || item.blocks.length === 0 || !item.blocks.every(isSoundBlock)) return undefined;
  const calls = item.toolCalls ?? [];
  let next = 0;
  const blocks = item.blocks.map((block) => {
    if (block["type"] !== "toolCall") return block;
    const call = calls[next++];
    return call === undefined ? block : { ...block, id: call.id, name: call.name };
  });
  return next === calls.length ? blocks : undefined;
}
