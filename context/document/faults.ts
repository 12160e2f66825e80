import { WireError } from "../../protocol/errors.ts";
import type { FatalCode, NoteRepair, Repair, RepairCode } from "./document.ts";

// What a context is refused for, and in which words.

const longestQuote = 80;

/** A name in quotes, cut where it is long. */
export function quoted(text: string): string {
  const name = text.length > longestQuote ? `${text.slice(0, longestQuote)}…` : text;
  return JSON.stringify(name.toWellFormed());
}

/** A whole number with spaces between its thousands: `61 204`. */
export function grouped(count: number): string {
  return String(Math.round(count)).replace(/\B(?=(\d{3})+$)/g, " ");
}

/** How a message names a node or an item: by its id, else by its place in the list. */
export function subject(entry: { readonly nodeId?: string | undefined; readonly id?: string }, index: number): string {
  const id = entry.id ?? entry.nodeId;
  return id === undefined ? `Item ${index + 1}` : `Node ${quoted(id)}`;
}

/** `context_invalid`: `data.code` says which rule, `data.nodeId` where. */
export function contextInvalid(code: FatalCode | RepairCode, message: string, nodeId?: string): WireError {
  return new WireError("context_invalid", message, { code, ...(nodeId === undefined ? {} : { nodeId }) });
}

export interface ExceededLimit {
  /** What has so many, as the beginning of a sentence. */
  readonly what: string;
  /** In the plural: `nodes`, `bytes`. */
  readonly unit: string;
  readonly count: number;
  readonly limit: number;
  /** The key of the configuration, if the limit has one. */
  readonly key?: string;
  readonly nodeId?: string | undefined;
}

/** `context_too_large`: `data` has the limit's key (absent where it has none), the limit and the count. */
export function contextTooLarge({ what, unit, count, limit, key, nodeId }: ExceededLimit): WireError {
  const where = key === undefined ? "" : ` (${key})`;
  const message = `${what} has ${grouped(count)} ${unit}; the limit is ${grouped(limit)}${where}.`;
  return new WireError("context_too_large", message, {
    ...(key === undefined ? {} : { key }),
    ...(nodeId === undefined ? {} : { nodeId }),
    limit,
    count,
  });
}

/** What makes a context fit its target without anything having been wrong with it. */
const adaptations: ReadonlySet<RepairCode> = new Set(["lone_surrogate", "image_left_out"]);

/**
 * Hears of each repair and passes it on. Where no repair is wanted it throws `context_invalid` instead, with the
 * repair's code and node; what only adapts a sound context to its target is passed on all the same.
 */
export function repairNote(repair: boolean, note: NoteRepair = () => {}): NoteRepair {
  if (repair) return note;
  return (found: Repair) => {
    if (!adaptations.has(found.code)) throw contextInvalid(found.code, found.detail, found.nodeId);
    note(found);
  };
}
