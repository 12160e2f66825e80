import { type ContextLimits, hardContextLimits } from "../../protocol/context-limits.ts";
import type { Meta } from "../../protocol/link-context.ts";
import {
  CONTEXT_FORMAT,
  CONTEXT_VERSION,
  type ContextDocument,
  type ContextItem,
  type ContextTarget,
} from "./document.ts";
import { nativeEventOf, plainText } from "./native-event.ts";
import { projectItems } from "./projection.ts";
import { asRead } from "./read-document.ts";
import { repairItems } from "./repair.ts";
import { contextForStructured, type SelectOptions } from "./select.ts";
import { hasSignedItems, UnsignedCalls, unsignedBlock, unsignedId } from "./signed-items.ts";

export interface NormaliseOptions {
  /** Default: the document's `leafId`. */
  readonly nodeId?: string;
  readonly until?: SelectOptions["until"];
  /** Default false, as in an export. */
  readonly includeSystem?: boolean;
  /** Default false, as in an export. */
  readonly includeReasoning?: boolean;
  /** Default: the maximum that a configuration can set. */
  readonly limits?: ContextLimits;
}

/**
 * Returns a document as it would be exported from a session made of it: the repaired items of one path instead of
 * nodes.
 *
 * Throws the errors of reading, selecting and repairing.
 */
export function normalise(value: unknown, target: ContextTarget, options: NormaliseOptions = {}): ContextDocument {
  const { nodeId, until, includeSystem = false, includeReasoning = false, limits = hardContextLimits } = options;
  const document = asRead(value, limits);
  const selected = projectItems(contextForStructured(document, nodeId, { until, limits }));
  const { source } = document;
  const items: ContextItem[] = [];
  const calls = new UnsignedCalls();
  for (const item of repairItems(selected, { target, repair: true, limits })) {
    if (item.role === "system" && !includeSystem) continue;
    items.push(plain(withOneText(includeReasoning ? item : withoutReasoning(item, calls))));
  }
  return { format: CONTEXT_FORMAT, version: CONTEXT_VERSION, ...(source === undefined ? {} : { source }), items };
}

function withoutReasoning(item: ContextItem, calls: UnsignedCalls): ContextItem {
  if (item.role === "toolResult") return calls.result(item);
  const content = item.content.filter(({ type }) => type !== "reasoning");
  const isUnsigned =
    hasSignedItems(item.model?.api) &&
    item.content.some((part) => part.type === "reasoning" && part.signature !== undefined);
  const rest = item.blocks?.filter(({ type }) => type !== "thinking");
  const blocks = isUnsigned ? rest?.map(unsignedBlock) : rest;
  const toolCalls = isUnsigned ? item.toolCalls?.map((call) => ({ ...call, id: unsignedId(call.id) })) : item.toolCalls;
  calls.add(item.toolCalls ?? [], toolCalls ?? []);
  return {
    ...item,
    content,
    ...(blocks === undefined ? {} : { blocks }),
    ...(toolCalls === undefined ? {} : { toolCalls }),
  };
}

/** Joins the texts of an item whose pi message has a single text. */
function withOneText(item: ContextItem): ContextItem {
  const native = nativeEventOf(item);
  if (native === undefined || native.type === "custom_message" || item.content.length < 2) return item;
  return { ...item, content: [{ type: "text", text: plainText(item) ?? "" }] };
}

/** Removes blocks that add nothing to `content` and `toolCalls`: texts first, then calls, without provider data. */
function plain(item: ContextItem): ContextItem {
  const { blocks, ...rest } = item;
  if (blocks === undefined) return item;
  let hasCalls = false;
  for (const block of blocks) {
    if (!isBare(block) || (hasCalls && block["type"] !== "toolCall")) return item;
    hasCalls ||= block["type"] === "toolCall";
  }
  return rest;
}

function isBare(block: Meta): boolean {
  const fields = Object.keys(block).length;
  return block["type"] === "toolCall" ? fields === 4 : block["type"] === "text" && fields === 2;
}
