import type { Gap } from "../../protocol/event.ts";
import type { Frame } from "../frames/frame.ts";

/** What a subscriber wants of pi's events; of what is not given it wants all. */
export interface Wanted {
  /** Types of pi's events. Other notifications always come. */
  readonly types?: readonly string[] | undefined;
  /** `false`: no high-rate records. */
  readonly deltas?: boolean | undefined;
}

/** The types of records that pi writes in great numbers. */
const deltaTypes = ["message_update", "tool_execution_update", "bash_execution_update"] as const;

/** What a subscriber wants to get. Without a wish, nothing of a frame is looked at. */
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

  /** Whether it matters to the subscriber that these are missing. */
  concerns({ onlyDeltas }: Gap): boolean {
    return onlyDeltas !== true || this.#deltas;
  }
}

const eventHead = Buffer.from('{"jsonrpc":"2.0","method":"session/event"', "latin1");
const typeHead = Buffer.from('"event":{"type":"', "latin1");

/** The type of the event in an envelope; undefined for another notification. pi writes `type` first. */
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
    // What pi wrote has the form of JSON and is none: it has no type that anybody can ask for.
    return "";
  }
}
