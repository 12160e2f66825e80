import type { SessionEntry } from "../../../extension/pi-types.ts";
import { isRecord } from "../../../protocol/objects.ts";
import type { EditForecast } from "../../../protocol/optimisation/report.ts";

/** `customType` of the entries, and key in a tool result's `details`, that record removed content. */
export const RECALL_MARK = "pi-rpcd.recall";

/** The place of a removed text: an entry of the session's file, or a file of the spill directory. */
export type RecallPlace =
  | { readonly kind: "entry"; readonly entryId: string }
  | {
      readonly kind: "spill";
      readonly sha256: string;
      readonly bytes: number;
      /** The result that was cut. Absent: its details have the record. */
      readonly resultId?: string;
    };

/** A removed or shortened output, with the number by which the model recalls it. */
export interface RecallRecord {
  /** Counted over the whole file, from 1. Written as `r001`. */
  readonly number: number;
  /** The part that removed it: `masking`, `toolResults`, or a strategy of pruning. */
  readonly part: string;
  readonly tool: string;
  /** Estimated removed tokens. */
  readonly tokens: number;
  readonly place: RecallPlace;
}

/** The forecast for a batch, in its custom entry: its cost, and what it saves in the requests that profit. */
export interface BatchCost {
  readonly tokens: number;
  readonly usd: number;
  readonly requests: number;
  readonly savedUsd: number;
}

const noCost: BatchCost = { tokens: 0, usd: 0, requests: 0, savedUsd: 0 };

export function batchCost({ missedTokens, missedUsd, requests, savedUsd }: EditForecast): BatchCost {
  return { tokens: missedTokens, usd: missedUsd, requests, savedUsd };
}

/** The removed outputs that an entry records. */
export interface Recorded {
  readonly records: readonly RecallRecord[];
  /** Absent: the outputs were cut before they were stored. */
  readonly batch?: { readonly part: string; readonly cost: BatchCost };
}

/** Why a part removes nothing more. */
export const noNumberLeft = "The session's file leaves no number by which an output could be recalled.";

const maxNumber = 999_999_999;
/** Maximum records of a batch. */
const maxRecords = 100_000;
/** Tokens or dollars. A larger hand-edited value could overflow sums. */
const maxAmount = 1_000_000_000;
const idPattern = /^\s*[[(`"']*r(\d{1,9})[\])`"']*\s*$/iu;

export function recallIdOf(number: number): string {
  return `r${String(number).padStart(3, "0")}`;
}

/** The number of an id in any form that a model writes. `undefined`: not an id. */
export function numberOf(id: string): number | undefined {
  const digits = idPattern.exec(id)?.[1];
  const number = digits === undefined ? 0 : Number(digits);
  return number > 0 ? number : undefined;
}

/** The data of the custom entry of a batch. */
export function recordData(part: string, records: readonly RecallRecord[], cost: BatchCost = noCost): object {
  return { v: 1, part, records: records.map(written), cost };
}

/** The data of the custom entry for results whose `details` were replaced by another extension. */
export function cutData(part: string, records: readonly RecallRecord[]): object {
  return { v: 1, part, records: records.map(written) };
}

/** The record of a cut in a tool result's `details`, under {@link RECALL_MARK}. */
export function recordMark(record: RecallRecord): object {
  return { v: 1, ...written(record) };
}

/** Reads an entry. Data of another form is ignored, because other extensions and people write session files too. */
export function recordedIn(entry: SessionEntry): Recorded | undefined {
  if (entry.type === "custom" && entry.customType === RECALL_MARK) return batch(entry.data);
  if (entry.type !== "message" || entry.message.role !== "toolResult") return undefined;
  const { details } = entry.message;
  if (!isRecord(details) || !Object.hasOwn(details, RECALL_MARK)) return undefined;
  const mark = details[RECALL_MARK];
  const record = isRecord(mark) && mark["v"] === 1 ? recordOf(mark) : undefined;
  // The details of a result belong to the tool. Ours only name a spilled text, so a forged one reveals nothing else.
  return record?.place.kind === "spill" ? { records: [record] } : undefined;
}

function batch(data: unknown): Recorded | undefined {
  if (!isRecord(data) || data["v"] !== 1) return undefined;
  const { part, records, cost } = data;
  if (!Array.isArray(records) || !isName(part)) return undefined;
  const sound = records.slice(0, maxRecords).flatMap((one: unknown) => (isRecord(one) ? (recordOf(one) ?? []) : []));
  if (!isRecord(cost)) return { records: sound };
  const { tokens, usd, requests, savedUsd } = cost;
  const forecast: BatchCost = {
    tokens: amount(tokens),
    usd: amount(usd),
    requests: amount(requests),
    savedUsd: amount(savedUsd),
  };
  return { records: sound, batch: { part, cost: forecast } };
}

function written({ number, part, tool, tokens, place }: RecallRecord): object {
  const { kind: _, ...where } = place;
  return { id: recallIdOf(number), part, tool, tokens, ...where };
}

function recordOf(value: Readonly<Record<string, unknown>>): RecallRecord | undefined {
  const { id, part, tool, tokens } = value;
  const number = typeof id === "string" ? numberOf(id) : undefined;
  const place = placeOf(value);
  if (number === undefined || number > maxNumber || place === undefined || !isName(part) || !isName(tool))
    return undefined;
  return { number, part, tool, tokens: amount(tokens), place };
}

function placeOf({ entryId, sha256, bytes, resultId }: Readonly<Record<string, unknown>>): RecallPlace | undefined {
  if (isName(entryId)) return { kind: "entry", entryId };
  if (typeof sha256 !== "string" || !/^[0-9a-f]{64}$/u.test(sha256)) return undefined;
  return Number.isSafeInteger(bytes) && (bytes as number) >= 0
    ? { kind: "spill", sha256, bytes: bytes as number, ...(isName(resultId) ? { resultId } : {}) }
    : undefined;
}

function isName(value: unknown): value is string {
  return typeof value === "string" && value !== "" && value.length <= 256;
}

function amount(value: unknown): number {
  return typeof value === "number" && value > 0 && value <= maxAmount ? value : 0;
}
