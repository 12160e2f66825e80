import type { Gap } from "../../protocol/event.ts";
import type { NotificationName } from "../../protocol/notifications.ts";
import type { Frame } from "../frames/frame.ts";
import type { SeqNumbers } from "./seq-numbers.ts";

export interface EventLogOptions {
  readonly sessionId: string;
  /** Frames are forgotten from the oldest on when all together exceed this. */
  readonly maxRetainedBytes: number;
  readonly numbers: SeqNumbers;
}

/** What can be replayed behind a cursor. */
export interface Replay {
  readonly frames: readonly Frame[];
  readonly cursor: number;
  readonly gap: Gap | undefined;
}

/** Frames one behind the other in one piece of memory, which is freed as a whole. */
interface Segment {
  readonly bytes: Buffer;
  readonly firstSeq: number;
  readonly starts: number[];
  end: number;
}

const smallestSegment = 8 * 1024;
const largestSegment = 1024 * 1024;
const tail = Buffer.from("}}", "latin1");
/** Digits of seq, time and generation, and the keys between them. */
const middleBytes = 96;

/**
 * Numbers what a session reports and keeps the newest of it. A frame is built once, as the bytes of a whole JSON-RPC
 * notification, and shared by all who get it: pi's record is copied into it as it is and never parsed here.
 */
export class EventLog {
  readonly #sessionId: string;
  readonly #maxRetainedBytes: number;
  readonly #largestSegment: number;
  readonly #eventHead: Buffer;
  readonly #segments: Segment[] = [];
  readonly #numbers: SeqNumbers;
  #retained = 0;

  constructor({ sessionId, maxRetainedBytes, numbers }: EventLogOptions) {
    this.#sessionId = sessionId;
    this.#numbers = numbers;
    this.#maxRetainedBytes = maxRetainedBytes;
    // Memory is given back by whole segments: small ones beside the bound, so that the bound is nearly used.
    this.#largestSegment = Math.max(smallestSegment, Math.min(largestSegment, maxRetainedBytes >> 2));
    this.#eventHead = Buffer.from(head("session/event", sessionId), "latin1");
  }

  /** The newest seq; 0 before the first. */
  get cursor(): number {
    return this.#numbers.last;
  }

  /** Wraps a record of pi. The frame is valid as long as somebody holds it, and must not be changed. */
  appendEvent(record: Buffer, generation: number, isDelta = false): Frame {
    const seq = this.#numbers.next();
    const size = this.#eventHead.length + middleBytes + record.length + tail.length;
    const segment = this.#room(size);
    const { bytes, end: start } = segment;
    let at = start + this.#eventHead.copy(bytes, start);
    at += bytes.write(`${seq},"at":${Date.now()},"generation":${generation},"event":`, at, "latin1");
    at += record.copy(bytes, at);
    at += tail.copy(bytes, at);
    return this.#frame(this.#close(segment, at), isDelta);
  }

  /** Wraps a notification of the daemon's own. `params` gets `sessionId`, `seq` and `at` in front. */
  append(method: NotificationName, params: Readonly<Record<string, unknown>>): Frame {
    const seq = this.#numbers.next();
    const rest = JSON.stringify(params).slice(1);
    const text = `${head(method, this.#sessionId)}${seq},"at":${Date.now()}${rest === "}" ? "" : ","}${rest}}`;
    const segment = this.#room(Buffer.byteLength(text));
    return this.#frame(this.#close(segment, segment.end + segment.bytes.write(text, segment.end)), false);
  }

  /** All frames behind a cursor, as far as they are still held. */
  since(after: number): Replay {
    const { cursor } = this;
    // A cursor of another log says nothing about this one: all of it is behind.
    if (after > cursor) return { ...this.since(0), gap: { from: 0, to: after, reason: "log_reset" } };
    const frames: Frame[] = [];
    for (const { bytes, firstSeq, starts, end } of this.#segments) {
      for (let i = Math.max(0, after + 1 - firstSeq); i < starts.length; i += 1) {
        const frame = bytes.subarray(starts[i], starts[i + 1] ?? end);
        frames.push({ bytes: frame, sessionId: this.#sessionId, seq: firstSeq + i, isDelta: false });
      }
    }
    const oldest = this.#segments[0]?.firstSeq ?? cursor + 1;
    const gap: Gap | undefined =
      after + 1 < oldest ? { from: after + 1, to: oldest - 1, reason: "not_retained" } : undefined;
    return { frames, cursor, gap };
  }

  #frame(bytes: Buffer, isDelta: boolean): Frame {
    return { bytes, sessionId: this.#sessionId, seq: this.cursor, isDelta };
  }

  /** A segment with room for a frame of at most `size` bytes. Segments grow, so that a quiet session costs little. */
  #room(size: number): Segment {
    const newest = this.#segments.at(-1);
    if (newest !== undefined && newest.bytes.length - newest.end >= size) return newest;
    const next = Math.min(this.#largestSegment, Math.max(smallestSegment, (newest?.bytes.length ?? 0) * 2));
    const segment: Segment = {
      bytes: Buffer.allocUnsafeSlow(Math.max(next, size)),
      firstSeq: this.cursor,
      starts: [],
      end: 0,
    };
    this.#segments.push(segment);
    this.#retained += segment.bytes.length;
    while (this.#retained > this.#maxRetainedBytes && this.#segments.length > 1) {
      this.#retained -= (this.#segments.shift() as Segment).bytes.length;
    }
    return segment;
  }

  #close(segment: Segment, end: number): Buffer {
    const frame = segment.bytes.subarray(segment.end, end);
    segment.starts.push(segment.end);
    segment.end = end;
    return frame;
  }
}

/** Session ids are of a plain alphabet, so they need no escaping. */
function head(method: NotificationName, sessionId: string): string {
  return `{"jsonrpc":"2.0","method":"${method}","params":{"sessionId":"${sessionId}","seq":`;
}
