import { WireError } from "../../protocol/errors.ts";
import type { FatalCode, NoteRepair, Repair, RepairCode } from "./document.ts";

// Errors of refused contexts, and their messages.

const longestQuote = 80;

/** Quotes a name and shortens a long one. */
export function quoted(text: string): string {
  const name = text.length > longestQuote ? `${text.slice(0, longestQuote)}…` : text;
  return JSON.stringify(name.toWellFormed());
}

/** Formats an integer with spaces between thousands: `61 204`. */
export function grouped(count: number): string {
  return String(Math.round(count)).replace(/\B(?=(\d{3})+$)/g, " ");
}

/** Names a node or an item in a message: by id, otherwise by position. */
export function subject(entry: { readonly nodeId?: string | undefined; readonly id?: string }, index: number): string {
  const id = entry.id ?? entry.nodeId;
  return id === undefined ? `Item ${index + 1}` : `Node ${quoted(id)}`;
}

/** `context_invalid`: `data.code` says which rule, `data.nodeId` where. */
export function contextInvalid(code: FatalCode | RepairCode, message: string, nodeId?: string): WireError {
  return new WireError("context_invalid", message, { code, ...(nodeId === undefined ? {} : { nodeId }) });
}

export interface ExceededLimit {
  /** The thing that is too large, as the start of a sentence. */
  readonly what: string;
  /** In the plural: `nodes`, `bytes`. */
  readonly unit: string;
  readonly count: number;
  readonly limit: number;
  /** Configuration key of the limit, if it has one. */
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

/** Repairs that adapt a valid context to its target. */
const adaptations: ReadonlySet<RepairCode> = new Set(["lone_surrogate", "image_left_out"]);

/**
 * Returns a function that passes each repair on. With `repair: false` it throws `context_invalid` with the repair's
 * code and node instead, except for adaptations of a valid context to its target.
 */
export function repairNote(repair: boolean, note: NoteRepair = () => {}): NoteRepair {
  if (repair) return note;
  return (found: Repair) => {
    if (!adaptations.has(found.code)) throw contextInvalid(found.code, found.detail, found.nodeId);
    note(found);
  };
}
