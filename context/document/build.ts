import { DELIVERY_MARK } from "../../protocol/link.ts";
import type { BuiltMessage, ImagePart, TextPart } from "../../protocol/link-context.ts";
import { assistantContent } from "./build-assistant.ts";
import { CONTEXT_EVENT_TYPE, type ContextItem, type ContextTarget } from "./document.ts";
import { isObject } from "./measure.ts";
import { isSummary, type NativeEvent, nativeEventOf, plainText } from "./native-event.ts";
import type { ContextOptions } from "./options.ts";

export type BuildOptions = Pick<ContextOptions, "systemNodes" | "events">;

/** Messages as pi has them, one for each item that is not left out and not of the role `system`. */
export interface Built {
  readonly messages: readonly BuiltMessage[];
  /** The texts of the `system` items in their order, with an empty line between them. Absent: there are none. */
  readonly instructions?: string;
}

/**
 * Makes messages of items that are sound (`repairItems`) for a model. The same items give the same messages, byte for
 * byte. Usage is zero everywhere: pi would add it to what the session costs.
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

/** The items without those that the options leave out. */
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

/** An event as a message: what of pi's own it stands for, else a custom message that names it in its first line. */
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

/** The mark of a delivery in another session says nothing in this one, where it would be taken for one of its own. */
function withoutMark(details: unknown): unknown {
  if (!isObject(details) || !Object.hasOwn(details, DELIVERY_MARK)) return details;
  const { [DELIVERY_MARK]: _, ...rest } = details;
  return rest;
}

/** Without what is empty, which some services refuse, and without reasoning, which only an assistant has. */
function visibleParts(item: ContextItem): readonly (TextPart | ImagePart)[] {
  return item.content.flatMap((part): readonly (TextPart | ImagePart)[] => {
    if (part.type === "text") return part.text === "" ? [] : [{ type: "text", text: part.text }];
    return part.type === "image" ? [{ type: "image", data: part.data, mimeType: part.mimeType }] : [];
  });
}

function textOf(item: ContextItem): string {
  return plainText(item) ?? item.content.map((part) => (part.type === "text" ? part.text : "")).join("");
}
