import type { MessageOrigin } from "../../protocol/event.ts";
import type { StoredSpan, StoredSpans } from "../store/events.ts";

/** A stored notification, as far as it was parsed. */
export interface StoredFrame {
  readonly bytes: Buffer;
  readonly seq: number;
  readonly at: number;
  readonly method: string;
  /** Its params without `sessionId`, `seq` and `at`, from the comma on. */
  readonly rest: Buffer;
}

/** What a number of the log is. `unknown`: nothing says it. */
type Stored =
  | { readonly kind: "frame"; readonly frame: StoredFrame }
  | { readonly kind: "delta" }
  /** Something that is not a delta, and was not stored. */
  | { readonly kind: "omitted" }
  | { readonly kind: "unknown" };

/** What the next record of pi is in the log. */
export type Placed =
  | { readonly kind: "same"; readonly at: number; readonly isDelta: boolean; readonly fields: string }
  /** The number belongs to a notification of the daemon; the record has a later one. */
  | { readonly kind: "own"; readonly frame: StoredFrame }
  | { readonly kind: "mismatch"; readonly why: string };

/** A record of pi's repeated output, and the number that it may have. */
export interface Repeated {
  readonly seq: number;
  readonly record: Buffer;
  readonly generation: number;
  readonly isDelta: boolean;
  /** Whether it is too large to be stored. */
  readonly isTooLarge: boolean;
}

/** The part of a store that a replay reads. */
export interface ReadableStore {
  read(sessionId: string, after: number, maxBytes: number): StoredSpans;
}

/** Bytes read from the store at a time. */
const chunkBytes = 256 * 1024;

const frameHead =
  /^\{"jsonrpc":"2\.0","method":"([\w/]+)","params":\{"sessionId":"[\w.-]*","seq":(\d+),"at":(\d+)(?=[,}])/;
/** More than the longest head. */
const maxHeadBytes = 512;
const eventHead =
  /^,"generation":(\d+)((?:,"promptId":"(?:[^"\\]|\\.)*")?(?:,"by":\{"clientId":"(?:[^"\\]|\\.)*"(?:,"name":"(?:[^"\\]|\\.)*")?\})?),"event":/;
/** More than the longest head of an event, after `at`. */
const maxEventHeadBytes = 2_048;
const ownType = '{"type":"rpcd_';
const eventTail = Buffer.from("}}", "latin1");

/** The fields of an envelope about a message's origin as they follow `generation`, in ASCII. */
export function originFields({ promptId, by }: MessageOrigin): string {
  const fields = {
    ...(promptId === undefined ? {} : { promptId }),
    ...(by && { by: { clientId: by.clientId, ...(by.name === undefined ? {} : { name: by.name }) } }),
  };
  const text = JSON.stringify(fields).slice(1, -1);
  const escaped = text.replace(/[\u007f-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
  return escaped === "" ? "" : `,${escaped}`;
}

/** Parses the head of a stored notification; undefined: it is damaged. */
export function storedFrame(bytes: Buffer): StoredFrame | undefined {
  const found = frameHead.exec(bytes.toString("latin1", 0, maxHeadBytes));
  if (found === null) return undefined;
  const [head, method = "", seq, at] = found;
  return { bytes, seq: Number(seq), at: Number(at), method, rest: bytes.subarray(head.length) };
}

/**
 * Whether the daemon made this notification. `maybe`: it has the form of an event of the daemon, which pi can imitate.
 */
export function isOwn({ method, rest }: StoredFrame): boolean | "maybe" {
  if (method !== "session/event") return true;
  const { length } = eventHead.exec(rest.toString("latin1", 0, maxEventHeadBytes))?.[0] ?? "";
  return rest.toString("latin1", length, length + ownType.length) === ownType ? "maybe" : false;
}

/** The stored frames of a session, numbers `after` to `upTo`. Throws if they cannot be read. */
export function* storedSpans(
  store: ReadableStore,
  sessionId: string,
  after: number,
  upTo: number,
): Generator<StoredSpan, void> {
  for (let last = after; last < upTo; ) {
    const { spans, isEnd } = store.read(sessionId, last, chunkBytes);
    for (const span of spans) {
      if (span.firstSeq > upTo) return;
      yield span;
      last = span.lastSeq;
    }
    if (isEnd) return;
  }
}

/**
 * Finds the numbers of records that pi's output repeats. The stored log decides: it has every notification that a
 * former daemon sent, except deltas. Numbers are asked for in ascending order.
 */
export class Replay {
  /** The newest stored number. Later records have no stored frame. */
  readonly newest: number;
  readonly #spans: Iterator<StoredSpan, void>;
  #span: StoredSpan | undefined;
  /** The next frame of the span. */
  #next = 0;
  #frame: StoredFrame | undefined;
  /** The time of the last frame before the current number. */
  #at: number | undefined;

  constructor(store: ReadableStore, sessionId: string, after: number, newest: number) {
    this.newest = newest;
    this.#spans = storedSpans(store, sessionId, after, newest);
  }

  /**
   * The stored frame of a number if the daemon made it. `isEnd`: no record follows, so a frame that pi could have
   * written is the daemon's.
   */
  own(seq: number, isEnd: boolean): StoredFrame | undefined {
    const stored = this.#stored(seq);
    if (stored.kind !== "frame") return undefined;
    const own = isOwn(stored.frame);
    return own === true || (isEnd && own === "maybe") ? stored.frame : undefined;
  }

  /** Compares the next record of pi with what the log has under a number. */
  place({ seq, record, generation, isDelta, isTooLarge }: Repeated): Placed {
    const stored = this.#stored(seq);
    if (stored.kind === "omitted" && isTooLarge && !isDelta) return this.#unstored(isDelta);
    if (stored.kind === "unknown" || stored.kind === "omitted") return mismatch(`Number ${seq} is not stored.`);
    if (stored.kind === "delta") {
      if (!isDelta) return mismatch(`Number ${seq} is a delta in the log, and not in pi's output.`);
      return this.#unstored(isDelta);
    }
    const { frame } = stored;
    const fields = isOwn(frame) === true ? undefined : fieldsBefore(frame, record, generation);
    if (fields !== undefined) return { kind: "same", at: frame.at, isDelta: false, fields };
    if (isOwn(frame) !== false) return { kind: "own", frame };
    return mismatch(`Number ${seq} has other bytes in the log than in pi's output.`);
  }

  /** A record that is not stored: between stored notifications time must not go backwards. */
  #unstored(isDelta: boolean): Placed {
    return { kind: "same", at: this.#at ?? this.#frame?.at ?? Date.now(), isDelta, fields: "" };
  }

  #nextSpan(): StoredSpan | undefined {
    try {
      return this.#spans.next().value ?? undefined;
    } catch {
      // A store that cannot be read ends the replay.
      return undefined;
    }
  }

  #stored(seq: number): Stored {
    while (this.#span === undefined || this.#span.lastSeq < seq) {
      const value = this.#nextSpan();
      if (value === undefined) return { kind: "unknown" };
      this.#at = this.#frame?.at ?? this.#at;
      this.#span = value;
      this.#next = 0;
      this.#frame = undefined;
    }
    const { firstSeq, lastSeq, gap, frames } = this.#span;
    if (gap === "not_retained" && firstSeq === lastSeq && firstSeq === seq) return { kind: "omitted" };
    if (firstSeq > seq || gap !== undefined) return { kind: "unknown" };
    while (this.#frame === undefined || this.#frame.seq < seq) {
      this.#at = this.#frame?.at ?? this.#at;
      const bytes = frames[this.#next];
      if (bytes === undefined) {
        this.#frame = undefined;
        return { kind: "delta" };
      }
      this.#frame = storedFrame(bytes);
      if (this.#frame === undefined) return { kind: "unknown" };
      this.#next += 1;
    }
    return this.#frame.seq === seq ? { kind: "frame", frame: this.#frame } : { kind: "delta" };
  }
}

function mismatch(why: string): Placed {
  return { kind: "mismatch", why };
}

/** {@link originFields} of a stored `session/event` with these bytes of pi. Undefined: it has others. */
function fieldsBefore({ rest }: StoredFrame, record: Buffer, generation: number): string | undefined {
  const [head, of, fields] = eventHead.exec(rest.toString("latin1", 0, maxEventHeadBytes)) ?? [];
  if (head === undefined || Number(of) !== generation) return undefined;
  const end = head.length + record.length;
  const isSame =
    rest.length === end + eventTail.length && rest.compare(record, 0, record.length, head.length, end) === 0;
  return isSame ? fields : undefined;
}
