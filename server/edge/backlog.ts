import type { Frame } from "../frames/frame.ts";
import { gapFrame } from "../frames/frame.ts";
import { mergeDeltas } from "../frames/merge-deltas.ts";

/** The sizes at which a backlog is reduced. */
export interface BacklogLimits {
  /** Above it, consecutive deltas of a content block are merged. */
  readonly mergeBytes: number;
  /** Above it, deltas are replaced by gaps. */
  readonly dropBytes: number;
}

/** Frames are merged in stretches of this part of `mergeBytes`, so that each is merged once. */
const stretchPart = 1 / 16;
/** A larger frame is not merged further: it would be parsed again with each stretch. */
const maxMergedBytes = 64 * 1024;
/** Memory that frames may keep alive while they use only a small part of it. */
const maxKeptBytes = 16 * 1024 * 1024;
const smallestPieceBytes = 64 * 1024;

/**
 * The frames that wait for one connection. If they become too many, deltas are merged and then replaced by gaps. The
 * frames of a session keep their order, and each `seq` stays covered: by its frame, by the `firstSeq..seq` of a merged
 * frame, or by a gap in the frame's place.
 */
export class Backlog {
  readonly #frames: Frame[] = [];
  #head = 0;
  #bytes = 0;
  /** Frames before this index were merged already. */
  #seen = 0;
  #seenBytes = 0;
  /** Whether no deltas are left before {@link #seen}. */
  #isBare = true;
  /** The index of a session's last merged frame, if it is a gap made here: such a gap can grow. */
  readonly #gaps = new Map<string, number>();
  readonly #ownGaps = new WeakSet<Frame>();
  /** The memory that the frames keep alive, and its size. */
  readonly #kept = new Set<ArrayBufferLike>();
  #keptBytes = 0;
  #lastKept: ArrayBufferLike | undefined;
  /** Frames before this index use most of the memory that they keep alive. */
  #gathered = 0;

  /** The number of deltas replaced by gaps. */
  dropped = 0;

  /** The bytes of all frames. */
  get bytes(): number {
    return this.#bytes;
  }

  /** The memory that the frames keep alive; it may include memory of frames that left recently. */
  get memory(): Iterable<ArrayBufferLike> {
    return this.#kept;
  }

  get isEmpty(): boolean {
    return this.#head === this.#frames.length;
  }

  push(frame: Frame): void {
    this.#frames.push(frame);
    this.#bytes += frame.bytes.length;
  }

  /** Removes and returns the oldest frame. */
  shift(): Frame | undefined {
    const frame = this.#frames[this.#head];
    if (frame === undefined) return undefined;
    this.#head += 1;
    this.#bytes -= frame.bytes.length;
    if (this.#head <= this.#seen) this.#seenBytes -= frame.bytes.length;
    else this.#seen = this.#head;
    if (this.#head === this.#frames.length) this.#reset();
    else if (this.#head > 4_096 && this.#head * 2 > this.#frames.length) this.#shorten();
    return frame;
  }

  clear(): void {
    this.#frames.length = 0;
    this.#bytes = 0;
    this.#reset();
  }

  /** Call after each `push` while the backlog does not shrink. Usually cheap. */
  shrink({ mergeBytes, dropBytes }: BacklogLimits): void {
    if (this.#isScattered()) this.#gather();
    if (this.#bytes <= mergeBytes) return;
    if (this.#seenBytes > 0 && this.#bytes - this.#seenBytes < mergeBytes * stretchPart) return;
    // If the frames that must stay are too large already, merging gains nothing.
    if (!(this.#isBare && this.#seenBytes > dropBytes)) this.#merge();
    if (this.#bytes > dropBytes) this.#drop();
    else this.#leaveGaps();
    this.#gather();
    this.#seen = this.#frames.length;
    this.#seenBytes = this.#bytes;
  }

  #merge(): void {
    let from = this.#seen;
    const last = this.#frames[from - 1];
    if (from > this.#head && last?.isDelta === true && last.bytes.length < maxMergedBytes) from -= 1;
    this.#replace(from, inOrderOfSessions(this.#frames.slice(from)).flatMap(mergeDeltas));
  }

  /** Replaces deltas by gaps: one gap for all deltas of a session between two frames that stay. */
  #drop(): void {
    const from = this.#isBare ? this.#seen : this.#head;
    if (!this.#isBare) this.#gaps.clear();
    const frames = this.#frames.slice(from);
    this.#replace(from, []);
    for (const frame of frames) {
      const { sessionId, seq, firstSeq = seq } = frame;
      const isOwnGap = this.#ownGaps.has(frame);
      const place = this.#gaps.get(sessionId);
      const former = place === undefined || place < this.#head ? undefined : this.#frames[place];
      if (!frame.isDelta && !isOwnGap) {
        // A frame without a number refers to the numbers before it, so no earlier gap may grow past it.
        if (seq === 0) this.#gaps.clear();
        else this.#gaps.delete(sessionId);
        this.push(frame);
        continue;
      }
      if (frame.isDelta) this.dropped += 1;
      if (place === undefined || former === undefined || firstSeq <= former.seq) {
        // A new subscription goes back in the log: its deltas do not continue the earlier gap.
        this.#gaps.set(sessionId, this.#frames.length);
        this.push(isOwnGap ? frame : this.#gap(sessionId, firstSeq, seq));
      } else {
        const gap = this.#gap(sessionId, former.firstSeq ?? former.seq, seq);
        this.#bytes += gap.bytes.length - former.bytes.length;
        this.#frames[place] = gap;
      }
    }
    this.#isBare = true;
  }

  #gap(sessionId: string, from: number, to: number): Frame {
    const gap = gapFrame(sessionId, { from, to, reason: "slow_reader", onlyDeltas: true });
    this.#ownGaps.add(gap);
    return gap;
  }

  /** Stops growing gaps: later deltas stay until the next {@link #drop}. */
  #leaveGaps(): void {
    this.#gaps.clear();
    this.#isBare = false;
  }

  /** Replaces all frames from index `from` on. */
  #replace(from: number, frames: readonly Frame[]): void {
    for (let i = from; i < this.#frames.length; i += 1) this.#bytes -= (this.#frames[i] as Frame).bytes.length;
    this.#frames.length = from;
    for (const frame of frames) this.push(frame);
    if (this.#gathered > from) this.#gathered = from;
  }

  /** Whether the frames keep much more memory alive than they have bytes, because they are slices of large buffers. */
  #isScattered(): boolean {
    const newest = this.#frames[this.#frames.length - 1];
    return newest !== undefined && this.#keep(newest) && this.#keptBytes > Math.max(maxKeptBytes, 4 * this.#bytes);
  }

  /** Notes the frame's memory. Returns whether no other frame has the same. */
  #keep({ bytes: { buffer } }: Frame): boolean {
    if (buffer === this.#lastKept) return false;
    this.#lastKept = buffer;
    if (this.#kept.has(buffer)) return false;
    this.#kept.add(buffer);
    this.#keptBytes += buffer.byteLength;
    return true;
  }

  /** Copies frames that use less than half of the memory that they keep alive. */
  #gather(): void {
    const from = Math.max(this.#gathered, this.#head);
    const scattered = this.#frames.slice(from).filter(isLesserPart);
    const memory = Buffer.allocUnsafeSlow(scattered.reduce((sum, { bytes }) => sum + bytes.length, 0));
    let at = 0;
    for (let i = from; scattered.length > 0 && i < this.#frames.length; i += 1) {
      const frame = this.#frames[i] as Frame;
      if (!isLesserPart(frame)) continue;
      const { headBytes: _head, ...rest } = frame;
      const bytes = memory.subarray(at, at + frame.bytes.copy(memory, at));
      at += bytes.length;
      const copy = { ...rest, bytes };
      if (this.#ownGaps.has(frame)) this.#ownGaps.add(copy);
      this.#frames[i] = copy;
    }
    this.#gathered = this.#frames.length;
    this.#forget();
    for (let i = this.#head; i < this.#frames.length; i += 1) this.#keep(this.#frames[i] as Frame);
  }

  #forget(): void {
    this.#kept.clear();
    this.#keptBytes = 0;
    this.#lastKept = undefined;
  }

  #reset(): void {
    this.#frames.length = 0;
    this.#head = 0;
    this.#seen = 0;
    this.#seenBytes = 0;
    this.#gathered = 0;
    this.#isBare = true;
    if (this.#gaps.size > 0) this.#gaps.clear();
    if (this.#keptBytes > 0) this.#forget();
  }

  #shorten(): void {
    const gone = this.#head;
    this.#frames.splice(0, gone);
    this.#head = 0;
    this.#seen = Math.max(0, this.#seen - gone);
    this.#gathered = Math.max(0, this.#gathered - gone);
    for (const [sessionId, place] of this.#gaps) {
      if (place < gone) this.#gaps.delete(sessionId);
      else this.#gaps.set(sessionId, place - gone);
    }
  }
}

/**
 * Groups frames by session, each in its order, so that the deltas of parallel sessions can be merged. A frame without a
 * number keeps its place between the numbered ones.
 */
function inOrderOfSessions(frames: readonly Frame[]): Frame[][] {
  const ordered: Frame[][] = [];
  let sessions = new Map<string, Frame[]>();
  for (const frame of frames) {
    if (frame.seq === 0) {
      ordered.push(...sessions.values(), [frame]);
      sessions = new Map();
      continue;
    }
    const others = sessions.get(frame.sessionId);
    if (others === undefined) sessions.set(frame.sessionId, [frame]);
    else others.push(frame);
  }
  ordered.push(...sessions.values());
  return ordered;
}

function isLesserPart({ bytes }: Frame): boolean {
  const piece = bytes.buffer.byteLength;
  return piece >= smallestPieceBytes && bytes.length * 2 < piece;
}
