import type { Gap } from "../../protocol/event.ts";
import type { Frame } from "../frames/frame.ts";

/** Which of pi's events a subscriber wants. An absent field means all. */
export interface Wanted {
  /** Types of pi's events. Other notifications are always sent. */
  readonly types?: readonly string[] | undefined;
  /** `false`: without high-rate records. */
  readonly deltas?: boolean | undefined;
}

/** The types of pi's high-rate records. */
const deltaTypes = ["message_update", "tool_execution_update", "bash_execution_update"] as const;

/** Filters frames for a subscriber. Without a filter, frames are not inspected. */
export class EventFilter {
  readonly #types: ReadonlySet<string> | undefined;
  readonly #deltas: boolean;

  constructor({ types, deltas = true }: Wanted) {
    this.#types = types === undefined ? undefined : new Set(types);
    this.#deltas = deltas && (types === undefined || deltaTypes.some((type) => types.includes(type)));
  }

  passes({ bytes, isDelta }: Frame): boolean {
    if (isDelta && !this.#deltas) return false;
    if (this.#types === undefined) return true;
    const type = eventType(bytes);
    return type === undefined || this.#types.has(type);
  }

  /** Whether the gap can contain frames that the subscriber wants. */
  concerns({ onlyDeltas }: Gap): boolean {
    return onlyDeltas !== true || this.#deltas;
  }
}

const eventHead = Buffer.from('{"jsonrpc":"2.0","method":"session/event"', "latin1");
const typeHead = Buffer.from('"event":{"type":"', "latin1");

/** The type of the event in an envelope; undefined for other notifications. pi writes `type` first. */
function eventType(bytes: Buffer): string | undefined {
  if (bytes.compare(eventHead, 0, eventHead.length, 0, eventHead.length) !== 0) return undefined;
  const at = bytes.indexOf(typeHead);
  const start = at + typeHead.length;
  const text = at === -1 ? "\\" : bytes.toString("utf8", start, bytes.indexOf(0x22, start));
  if (!text.includes("\\")) return text;
  try {
    const { params } = JSON.parse(bytes.toString("utf8")) as { params: { event?: { type?: unknown } | null } };
    return String(params.event?.type);
  } catch {
    // The record looks like JSON but is invalid, so it has no type to match.
    return "";
  }
}
