import type { SessionEntry } from "../../extension/pi-types.ts";
import { isRecord } from "../../protocol/objects.ts";
import { COMPRESS_TOOL } from "../../protocol/pruning/config.ts";
import { isBlockId } from "./block-id.ts";
import { BLOCKS_MARK, type BlockOperation, type BlockRecord, type BlocksRecord, type Segment } from "./record.ts";

/** The block data of an entry. */
export type BlockNews =
  | { readonly kind: "blocks"; readonly record: BlocksRecord; readonly callId?: string }
  | ({ readonly kind: "operation" } & BlockOperation);

/** One call makes at most 16. */
const maxBlocks = 64;
const maxEntryIds = 100_000;
const maxChildren = 10_000;
const maxSegments = 20_001;
export const maxKept = 10_000;
/** Tokens. A larger hand-edited value could overflow sums. */
const maxAmount = 1_000_000_000;
/** UTF-16 units of a body, or of the verbatim texts. */
const maxText = 4_000_000;
const maxTopic = 256;
const maxName = 256;

/** Reads an entry. Data of another form is ignored, because other extensions and people write session files too. */
export function blockNewsIn(entry: SessionEntry): BlockNews | undefined {
  if (entry.type === "custom") {
    return entry.customType === BLOCKS_MARK ? blockNewsOf(entry.data) : undefined;
  }
  if (entry.type !== "message" || entry.message.role !== "toolResult") return undefined;
  const { toolName, toolCallId, isError, details } = entry.message;
  if (toolName !== COMPRESS_TOOL || isError || typeof toolCallId !== "string") return undefined;
  const made = madeIn(details);
  return made === undefined ? undefined : { ...made, callId: toolCallId };
}

/** Reads data by the same rules. */
export function blockNewsOf(data: unknown): BlockNews | undefined {
  return operationOf(data) ?? madeIn(data);
}

/** The block numbers that an entry uses, valid blocks or not, so that no number is assigned twice. */
export function blockNumbersIn(entry: SessionEntry): readonly number[] {
  const data = entry.type === "custom" && entry.customType === BLOCKS_MARK ? entry.data : detailsOf(entry);
  if (!isRecord(data) || !Array.isArray(data["blocks"])) return [];
  return data["blocks"].slice(0, maxBlocks).flatMap((block: unknown) => {
    const id = isRecord(block) ? block["id"] : undefined;
    return isBlockId(id) ? [Number(id.slice(1))] : [];
  });
}

function detailsOf(entry: SessionEntry): unknown {
  if (entry.type !== "message" || entry.message.role !== "toolResult") return undefined;
  return entry.message.toolName === COMPRESS_TOOL ? entry.message.details : undefined;
}

function operationOf(data: unknown): BlockNews | undefined {
  if (!isRecord(data) || data["v"] !== 1) return undefined;
  const { operation, block } = data;
  if ((operation !== "decompress" && operation !== "recompress") || !isBlockId(block)) return undefined;
  return { kind: "operation", v: 1, operation, block };
}

/** All blocks of the record, or `undefined` if one is invalid. */
function madeIn(data: unknown): Extract<BlockNews, { kind: "blocks" }> | undefined {
  if (!isRecord(data) || data["v"] !== 1) return undefined;
  const { topic, blocks } = data;
  if (!isText(topic, maxTopic) || !isList(blocks, maxBlocks) || blocks.length === 0) return undefined;
  const sound = blocks.map(blockOf);
  if (!sound.every((block) => block !== undefined)) return undefined;
  return { kind: "blocks", record: { v: 1, topic, blocks: sound } };
}

function blockOf(value: unknown): BlockRecord | undefined {
  if (!isRecord(value)) return undefined;
  const { id, firstEntryId, lastEntryId, entryIds, children, body, kept = [], tokensBefore, tokensAfter } = value;
  if (!isBlockId(id) || !isText(firstEntryId, maxName) || !isText(lastEntryId, maxName)) return undefined;
  if (!isList(entryIds, maxEntryIds) || !entryIds.every((entryId) => isText(entryId, maxName))) return undefined;
  if (!isList(children, maxChildren) || !children.every(isBlockId)) return undefined;
  if (!isList(body, maxSegments) || !isList(kept, maxKept)) return undefined;
  const segments = body.map(segmentOf);
  const texts = kept.map(keptOf);
  if (!segments.every((segment) => segment !== undefined) || !texts.every((text) => text !== undefined)) {
    return undefined;
  }
  const length = (sum: number, text: string): number => sum + text.length;
  const written = segments.map((segment) => ("text" in segment ? segment.text : "")).reduce(length, 0);
  if (written + texts.flatMap(({ title, text }) => [title, text]).reduce(length, 0) > maxText) return undefined;
  return {
    id,
    firstEntryId,
    lastEntryId,
    entryIds,
    children,
    body: segments,
    kept: texts,
    tokensBefore: amount(tokensBefore),
    tokensAfter: amount(tokensAfter),
  };
}

function segmentOf(value: unknown): Segment | undefined {
  if (!isRecord(value)) return undefined;
  const { text, block } = value;
  if (typeof text === "string") return { text };
  return isBlockId(block) ? { block } : undefined;
}

function keptOf(value: unknown): { readonly title: string; readonly text: string } | undefined {
  if (!isRecord(value)) return undefined;
  const { title, text } = value;
  return typeof title === "string" && typeof text === "string" ? { title, text } : undefined;
}

function isList(value: unknown, atMost: number): value is readonly unknown[] {
  return Array.isArray(value) && value.length <= atMost;
}

function isText(value: unknown, atMost: number): value is string {
  return typeof value === "string" && value !== "" && value.length <= atMost;
}

function amount(value: unknown): number {
  return typeof value === "number" && value > 0 && value <= maxAmount ? value : 0;
}
