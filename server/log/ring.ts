import type { MemoryBudget } from "../core/memory-budget.ts";
import type { Frame } from "../frames/frame.ts";
import { isLarge } from "../frames/large-record.ts";
import { isMedium, mediumHeadBytes, wholeText, writeHead } from "../frames/message-head.ts";

/**
 * Consecutive frames in one block of memory, freed as a whole. Their numbers have no gaps. Each frame has space
 * before it for the head of its WebSocket message, so that many frames can be written as one block.
 */
interface Segment {
  readonly bytes: Buffer;
  readonly firstSeq: number;
  /** The start of each frame; a delta's start is stored as its complement. */
  readonly starts: number[];
  end: number;
}

export interface RingOptions {
  readonly sessionId: string;
  /** The oldest frames are dropped when the total exceeds this. */
  readonly maxBytes: number;
  /** The shared limit of all rings. */
  readonly budget: MemoryBudget;
}

const smallestSegment = 8 * 1024;
const largestSegment = 1024 * 1024;

/** The newest frames of a session's log, in memory. */
export class Ring {
  readonly #sessionId: string;
  readonly #maxBytes: number;
  readonly #largestSegment: number;
  readonly #budget: MemoryBudget;
  readonly #segments: Segment[] = [];
  #bytes = 0;
  #writing: Segment | undefined;

  constructor({ sessionId, maxBytes, budget }: RingOptions) {
    this.#sessionId = sessionId;
    this.#maxBytes = maxBytes;
    this.#budget = budget;
    // Memory is freed by whole segments. They are small compared with the limit, so that most of the limit is usable.
    this.#largestSegment = Math.max(smallestSegment, Math.min(largestSegment, maxBytes >> 2));
  }

  /** Bytes in memory. */
  get bytes(): number {
    return this.#bytes;
  }

  /** The number of the oldest frame. */
  get oldest(): number | undefined {
    return this.#segments[0]?.firstSeq;
  }

  /** Reserves at most `size` bytes for a frame, starting at `start`. */
  room(seq: number, size: number): { readonly bytes: Buffer; readonly start: number } {
    const newest = this.#segments.at(-1);
    const fits = newest !== undefined && newest.bytes.length - newest.end >= size + mediumHeadBytes;
    const follows = newest !== undefined && newest.firstSeq + newest.starts.length === seq;
    const segment = fits && follows ? newest : this.#segment(seq, size + mediumHeadBytes, newest);
    this.#writing = segment;
    return { bytes: segment.bytes, start: segment.end + mediumHeadBytes };
  }

  /** Completes the reserved frame, which ends at `end`. */
  close(end: number, seq: number, isDelta: boolean): Frame {
    const segment = this.#writing as Segment;
    const start = segment.end + mediumHeadBytes;
    const length = end - start;
    if (isMedium(length)) writeHead(segment.bytes, segment.end, length, wholeText);
    segment.starts.push(isDelta ? ~start : start);
    segment.end = end;
    return this.#frame(segment.bytes.subarray(start, end), seq, isDelta);
  }

  /** Adds a frame that is alone in its memory. */
  adopt(bytes: Buffer, seq: number, isDelta: boolean): Frame {
    this.#add({ bytes, firstSeq: seq, starts: [isDelta ? ~0 : 0], end: bytes.length });
    return this.#frame(bytes, seq, isDelta);
  }

  /** The frames from a number on. The reader may stop early; no frame may be added while it reads. */
  *from(seq: number): Generator<Frame, void> {
    for (const { bytes, firstSeq, starts, end } of this.#segments) {
      for (let i = Math.max(0, seq - firstSeq); i < starts.length; i += 1) {
        const written = starts[i] as number;
        const isDelta = written < 0;
        const start = isDelta ? ~written : written;
        yield this.#frame(bytes.subarray(start, endOf(starts, i, end)), firstSeq + i, isDelta);
      }
    }
  }

  /**
   * The frames from a number on that are not deltas. `firstSeq`: the number after the frame before, so that it includes
   * the deltas between. Without bytes: the deltas at the end of a block of memory.
   */
  *withoutDeltas(seq: number): Generator<{ readonly firstSeq: number; readonly seq: number; readonly bytes?: Buffer }> {
    for (const { bytes, firstSeq, starts, end } of this.#segments) {
      let next = Math.max(seq, firstSeq);
      for (let i = next - firstSeq; i < starts.length; i += 1) {
        const start = starts[i] as number;
        if (start < 0) continue;
        yield { firstSeq: next, seq: firstSeq + i, bytes: bytes.subarray(start, endOf(starts, i, end)) };
        next = firstSeq + i + 1;
      }
      const last = firstSeq + starts.length - 1;
      if (next <= last) yield { firstSeq: next, seq: last };
    }
  }

  /** Bytes of the frames from a number on. */
  bytesFrom(seq: number): number {
    let bytes = 0;
    for (const { firstSeq, starts, end } of this.#segments) {
      const start = starts[Math.max(0, seq - firstSeq)];
      if (start !== undefined) bytes += end - (start < 0 ? ~start : start);
    }
    return bytes;
  }

  /** Drops the oldest frames; those of the newest segment only with `all`. Returns whether there were any. */
  forgetOldest(all = false): boolean {
    if (this.#segments.length < (all ? 1 : 2)) return false;
    const [oldest] = this.#segments.splice(0, 1);
    if (oldest === this.#writing) this.#writing = undefined;
    this.#take(-(oldest as Segment).bytes.length);
    return true;
  }

  /** Drops all frames. */
  clear(): void {
    this.#segments.length = 0;
    this.#writing = undefined;
    this.#take(-this.#bytes);
    this.#budget.leave(this);
  }

  #frame(bytes: Buffer, seq: number, isDelta: boolean): Frame {
    const sessionId = this.#sessionId;
    // Shorter and longer frames need a head of another length, which is added when they are sent.
    if (!isMedium(bytes.length)) return { bytes, sessionId, seq, isDelta };
    return { bytes, sessionId, seq, isDelta, headBytes: mediumHeadBytes };
  }

  /** Segments grow, so that a quiet session uses little memory. */
  #segment(seq: number, size: number, newest: Segment | undefined): Segment {
    // A frame that is alone in its memory says nothing about the frames after it.
    const former = newest === undefined || isLarge(newest.bytes) ? 0 : newest.bytes.length;
    const next = Math.min(this.#largestSegment, Math.max(smallestSegment, former * 2));
    const bytes = Buffer.allocUnsafeSlow(Math.max(next, size));
    return this.#add({ bytes, firstSeq: seq, starts: [], end: 0 });
  }

  #add(segment: Segment): Segment {
    this.#segments.push(segment);
    this.#take(segment.bytes.length);
    while (this.#bytes > this.#maxBytes && this.forgetOldest());
    this.#budget.enforce(this);
    return segment;
  }

  #take(bytes: number): void {
    this.#bytes += bytes;
    this.#budget.bytes += bytes;
  }
}

function endOf(starts: readonly number[], i: number, end: number): number {
  const next = starts[i + 1];
  return next === undefined ? end : (next < 0 ? ~next : next) - mediumHeadBytes;
}
