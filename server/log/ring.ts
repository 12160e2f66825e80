import type { MemoryBudget } from "../core/memory-budget.ts";
import type { Frame } from "../frames/frame.ts";
import { isMedium, mediumHeadBytes, wholeText, writeHead } from "../frames/message-head.ts";

/**
 * Frames one behind the other in one piece of memory, which is freed as a whole. Their numbers have no holes. In front of
 * each is room for the head of the WebSocket message that holds it: many frames can be written as one piece.
 */
interface Segment {
  readonly bytes: Buffer;
  readonly firstSeq: number;
  /** Where each begins; that of a delta is written as its complement. */
  readonly starts: number[];
  end: number;
}

export interface RingOptions {
  readonly sessionId: string;
  /** Frames are forgotten from the oldest on when all together exceed this. */
  readonly maxBytes: number;
  /** What all rings together may hold. */
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
    // Memory is given back by whole segments: small ones beside the bound, so that the bound is nearly used.
    this.#largestSegment = Math.max(smallestSegment, Math.min(largestSegment, maxBytes >> 2));
  }

  /** The bytes of memory that it takes. */
  get bytes(): number {
    return this.#bytes;
  }

  /** The number of the oldest frame that it holds. */
  get oldest(): number | undefined {
    return this.#segments[0]?.firstSeq;
  }

  /** Room for a frame of at most `size` bytes, from `start` on. */
  room(seq: number, size: number): { readonly bytes: Buffer; readonly start: number } {
    const newest = this.#segments.at(-1);
    const fits = newest !== undefined && newest.bytes.length - newest.end >= size + mediumHeadBytes;
    const follows = newest !== undefined && newest.firstSeq + newest.starts.length === seq;
    const segment = fits && follows ? newest : this.#segment(seq, size + mediumHeadBytes, newest);
    this.#writing = segment;
    return { bytes: segment.bytes, start: segment.end + mediumHeadBytes };
  }

  /** The frame that was written into the room, up to `end`. */
  close(end: number, seq: number, isDelta: boolean): Frame {
    const segment = this.#writing as Segment;
    const start = segment.end + mediumHeadBytes;
    const length = end - start;
    if (isMedium(length)) writeHead(segment.bytes, segment.end, length, wholeText);
    segment.starts.push(isDelta ? ~start : start);
    segment.end = end;
    return this.#frame(segment.bytes.subarray(start, end), seq, isDelta);
  }

  /** The frames from a number on. Whoever reads them may stop; none may be added meanwhile. */
  *from(seq: number): Generator<Frame, void> {
    for (const { bytes, firstSeq, starts, end } of this.#segments) {
      for (let i = Math.max(0, seq - firstSeq); i < starts.length; i += 1) {
        const written = starts[i] as number;
        const isDelta = written < 0;
        const start = isDelta ? ~written : written;
        const next = starts[i + 1];
        const stop = next === undefined ? end : (next < 0 ? ~next : next) - mediumHeadBytes;
        yield this.#frame(bytes.subarray(start, stop), firstSeq + i, isDelta);
      }
    }
  }

  /** Forgets its oldest frames; those of the newest segment only with `all`. Gives whether there were any to forget. */
  forgetOldest(all = false): boolean {
    if (this.#segments.length < (all ? 1 : 2)) return false;
    const [oldest] = this.#segments.splice(0, 1);
    if (oldest === this.#writing) this.#writing = undefined;
    this.#take(-(oldest as Segment).bytes.length);
    return true;
  }

  /** Forgets everything. */
  clear(): void {
    this.#segments.length = 0;
    this.#writing = undefined;
    this.#take(-this.#bytes);
    this.#budget.leave(this);
  }

  #frame(bytes: Buffer, seq: number, isDelta: boolean): Frame {
    const sessionId = this.#sessionId;
    // Shorter and longer ones have a head of another length, and are given theirs where they are sent.
    if (!isMedium(bytes.length)) return { bytes, sessionId, seq, isDelta };
    return { bytes, sessionId, seq, isDelta, headBytes: mediumHeadBytes };
  }

  /** Segments grow, so that a quiet session costs little. */
  #segment(seq: number, size: number, newest: Segment | undefined): Segment {
    const next = Math.min(this.#largestSegment, Math.max(smallestSegment, (newest?.bytes.length ?? 0) * 2));
    const segment: Segment = {
      bytes: Buffer.allocUnsafeSlow(Math.max(next, size)),
      firstSeq: seq,
      starts: [],
      end: 0,
    };
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
