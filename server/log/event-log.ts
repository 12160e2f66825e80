import type { Gap } from "../../protocol/event.ts";
import type { NotificationName } from "../../protocol/notifications.ts";
import type { MemoryBudget } from "../core/memory-budget.ts";
import type { SeqNumbers } from "../core/seq-numbers.ts";
import type { Frame } from "../frames/frame.ts";
import type { StoredSpan, StoredSpans } from "../store/events.ts";
import { Ring } from "./ring.ts";

/** Persistent storage of logs, without deltas. */
export interface LogStore {
  /** The highest stored number of a session, at most `upTo`. */
  newest(sessionId: string, upTo?: number): number | undefined;
  put(sessionId: string, firstSeq: number, lastSeq: number, frames: readonly Buffer[]): Promise<void>;
  putGap(sessionId: string, gap: Gap): Promise<void>;
  /** Deletes stored frames above a number. */
  cut(sessionId: string, upTo: number): Promise<void>;
  read(sessionId: string, after: number, maxBytes: number): StoredSpans;
  /** Reads backwards: spans that start before a number, newest first. */
  readBack(sessionId: string, before: number): Iterable<StoredSpan>;
}

export interface EventLogOptions {
  readonly sessionId: string;
  readonly numbers: SeqNumbers;
  /** In memory: the oldest frames are dropped when the total exceeds this. */
  readonly maxRetainedBytes: number;
  readonly budget: MemoryBudget;
  readonly store: LogStore;
  /** A larger frame is not stored. */
  readonly maxStoredFrameBytes: number;
  /** Counts appended frames, shared with other logs. Default: counts this log only. */
  readonly totals?: { appended: number };
  /** Called with each frame that must be stored. With the deltas before it, it covers all numbers from `from`. */
  readonly onDurable: (from: number, frame: Buffer) => void;
}

/** A frame, or a gap with its reason. */
export type LogItem = { readonly kind: "frame"; readonly frame: Frame } | { readonly kind: "gap"; readonly gap: Gap };

/** Part of the log. Its items cover every number after `after`, up to `upTo`. */
export interface LogChunk {
  readonly items: readonly LogItem[];
  readonly upTo: number;
}

const tail = Buffer.from("}}", "latin1");
/** Digits of seq, time and generation, and the keys between them. */
const middleBytes = 96;
/** Uncompressed size of one stored row. */
const maxRowBytes = 1024 * 1024;

/**
 * Numbers a session's notifications, keeps the newest in memory, and stores all except deltas. Each frame is built
 * once, as the bytes of a complete JSON-RPC notification that all subscribers share. pi's record is copied into it
 * without parsing.
 */
export class EventLog {
  readonly #options: EventLogOptions;
  readonly #sessionId: string;
  readonly #totals: { appended: number };
  readonly #numbers: SeqNumbers;
  readonly #ring: Ring;
  readonly #eventHead: Buffer;
  /** The first number of this daemon. Numbers between it and the last stored one are lost. */
  readonly #base: number;
  readonly #lost: Gap | undefined;
  /** Whether rows above the base are stored. Their numbers were never reserved, and could not be deleted yet. */
  #hasForeign: boolean;
  /** Every frame to be stored is stored up to this number. */
  #stored: number;
  #storing: Promise<boolean> | undefined;
  #isClosed = false;
  /** The newest number, and the newest of a frame to be stored. */
  #newest: number;
  #covered: number;

  constructor(options: EventLogOptions) {
    const { sessionId, numbers, maxRetainedBytes, budget, store } = options;
    this.#options = options;
    this.#sessionId = sessionId;
    this.#totals = options.totals ?? { appended: 0 };
    this.#numbers = numbers;
    this.#ring = new Ring({ sessionId, maxBytes: maxRetainedBytes, budget });
    this.#eventHead = Buffer.from(head("session/event", sessionId), "latin1");
    this.#base = numbers.last;
    this.#hasForeign = (store.newest(sessionId) ?? 0) > this.#base;
    const newest = store.newest(sessionId, this.#base);
    this.#newest = numbers.last;
    this.#covered = numbers.last;
    this.#stored = newest ?? 0;
    if (this.#stored < this.#base) {
      const reason = newest === undefined ? "not_retained" : "daemon_restart";
      this.#lost = { from: this.#stored + 1, to: this.#base, reason };
    }
  }

  /** The newest seq; 0 before the first. */
  get cursor(): number {
    return this.#numbers.last;
  }

  /** Numbers that an earlier daemon used, or may have used, but did not store. */
  get lost(): Gap | undefined {
    return this.#lost;
  }

  /** Bytes in memory. */
  get retainedBytes(): number {
    return this.#ring.bytes;
  }

  /** Wraps a record of pi. The frame must not be changed; it stays valid while referenced. */
  appendEvent(record: Buffer, generation: number, isDelta: boolean): Frame {
    this.#totals.appended += 1;
    const seq = this.#numbers.next();
    const size = this.#eventHead.length + middleBytes + record.length + tail.length;
    const { bytes, start } = this.#ring.room(seq, size);
    let at = start + this.#eventHead.copy(bytes, start);
    at += bytes.write(`${seq},"at":${Date.now()},"generation":${generation},"event":`, at, "latin1");
    at += record.copy(bytes, at);
    at += tail.copy(bytes, at);
    return this.#added(this.#ring.close(at, seq, isDelta));
  }

  /** Wraps a notification of the daemon. `sessionId`, `seq` and `at` are added before `params`. */
  append(method: NotificationName, params: Readonly<Record<string, unknown>>): Frame {
    this.#totals.appended += 1;
    const seq = this.#numbers.next();
    const rest = JSON.stringify(params).slice(1);
    const text = `${head(method, this.#sessionId)}${seq},"at":${Date.now()}${rest === "}" ? "" : ","}${rest}}`;
    const size = Buffer.byteLength(text);
    const { bytes, start } = this.#ring.room(seq, size);
    return this.#added(this.#ring.close(start + bytes.write(text, start), seq, false));
  }

  /** Returns items after a cursor in order, about `maxBytes` at most. */
  read(after: number, maxBytes: number): LogChunk {
    const reading = new Reading(after);
    const held = this.#ring.oldest ?? this.cursor + 1;
    if (reading.next < held && reading.next <= this.cursor) {
      const isEnd = this.#readStored(reading, held, maxBytes);
      if (!isEnd) return reading;
    }
    for (const frame of this.#ring.from(reading.next)) {
      if (reading.size >= maxBytes) return reading;
      reading.skipTo(frame.seq, "store_failed");
      reading.take(frame);
    }
    return reading;
  }

  /** Whether everything from a number on is still retained; deltas may be missing. */
  holdsFrom(seq: number): boolean {
    if (seq >= (this.#ring.oldest ?? this.cursor + 1)) return true;
    const { spans } = this.#options.store.read(this.#sessionId, seq - 1, 1);
    const [first] = spans;
    return first !== undefined && first.gap === undefined && first.firstSeq <= seq;
  }

  /** Visits stored and buffered events, newest first, until `look` returns true. */
  lookBack(look: (frame: Buffer) => boolean): void {
    const held = this.#ring.oldest ?? this.cursor + 1;
    const inMemory = [...this.#ring.from(held)].reverse();
    for (const { bytes, isDelta } of inMemory) if (!isDelta && look(bytes)) return;
    for (const { frames } of this.#options.store.readBack(this.#sessionId, held)) {
      for (const frame of frames.toReversed()) if (look(frame)) return;
    }
  }

  /** Stores pending frames. Returns whether that succeeded; failed frames are stored next time. */
  persist(): Promise<boolean> {
    this.#storing ??= this.#persist().finally(() => {
      this.#storing = undefined;
    });
    return this.#storing;
  }

  /** Stores everything, frees the memory, and returns unused reserved numbers. */
  async rest(): Promise<void> {
    for (let attempt = 0; attempt < 3; attempt += 1) {
      if (!(await this.persist())) return;
      // Frames may have been appended in the meantime.
      if (this.#stored < this.cursor) continue;
      this.#ring.clear();
      await this.#numbers.release();
      return;
    }
  }

  /** Frees the memory and stops storing, because the session is about to be deleted. */
  close(): void {
    this.#isClosed = true;
    this.#ring.clear();
  }

  #added(frame: Frame): Frame {
    const { seq, bytes, isDelta } = frame;
    // After a jump.
    if (seq > this.#newest + 1) this.#covered = seq - 1;
    this.#newest = seq;
    if (isDelta) return frame;
    this.#options.onDurable(this.#covered + 1, bytes);
    this.#covered = seq;
    return frame;
  }

  async #persist(): Promise<boolean> {
    const { store } = this.#options;
    if (this.#isClosed) return true;
    try {
      if (this.#hasForeign) await store.cut(this.#sessionId, this.#base);
      this.#hasForeign = false;
      if (this.#stored < this.#base && this.#lost !== undefined) {
        await store.putGap(this.#sessionId, this.#lost);
        this.#stored = this.#base;
      }
      while (this.#stored < this.cursor && !this.#isClosed) {
        const { firstSeq, lastSeq, frames } = this.#nextRow();
        if (lastSeq < firstSeq) break;
        if (frames === "jump" || frames === "forgotten") {
          const reason = frames === "jump" ? "store_failed" : "not_retained";
          await store.putGap(this.#sessionId, { from: firstSeq, to: lastSeq, reason });
        } else if (frames !== "too_large") {
          await store.put(this.#sessionId, firstSeq, lastSeq, frames);
        }
        this.#stored = lastSeq;
      }
      return true;
    } catch {
      // The store has logged the error. Frames that are still in memory are tried again.
      return false;
    }
  }

  /** The next numbers to store, with their frames. */
  #nextRow(): { firstSeq: number; lastSeq: number; frames: Buffer[] | "jump" | "too_large" | "forgotten" } {
    const { maxStoredFrameBytes } = this.#options;
    const firstSeq = this.#stored + 1;
    const held = this.#ring.oldest ?? this.cursor + 1;
    // These frames were dropped from memory before they could be stored.
    if (firstSeq < held) return { firstSeq, lastSeq: held - 1, frames: "forgotten" };
    const frames: Buffer[] = [];
    let lastSeq = firstSeq - 1;
    let size = 0;
    for (const { bytes, seq, isDelta } of this.#ring.from(firstSeq)) {
      if (seq > lastSeq + 1) {
        if (lastSeq >= firstSeq) break;
        return { firstSeq, lastSeq: seq - 1, frames: "jump" };
      }
      if (!isDelta && bytes.length > maxStoredFrameBytes) {
        if (lastSeq >= firstSeq) break;
        return { firstSeq, lastSeq: seq, frames: "too_large" };
      }
      if (size > 0 && size + bytes.length > maxRowBytes) break;
      lastSeq = seq;
      if (isDelta) continue;
      frames.push(bytes);
      size += bytes.length;
    }
    return { firstSeq, lastSeq, frames };
  }

  /** Reads stored frames up to those in memory. Returns whether it reached them. */
  #readStored(reading: Reading, held: number, maxBytes: number): boolean {
    const { spans, isEnd } = this.#options.store.read(this.#sessionId, reading.next - 1, maxBytes);
    const isForeign = ({ lastSeq }: StoredSpan): boolean => this.#hasForeign && lastSeq > this.#base;
    for (const span of spans) {
      if (span.firstSeq >= held || isForeign(span)) continue;
      const { firstSeq, lastSeq, gap, frames } = span;
      reading.skipTo(firstSeq, "not_retained");
      const upTo = Math.min(lastSeq + 1, held);
      if (gap !== undefined) {
        reading.skipTo(upTo, gap);
        continue;
      }
      for (const bytes of frames) {
        const seq = seqOf(bytes, this.#eventHead.length);
        if (seq < reading.next || seq >= held) continue;
        reading.skipTo(seq, "not_retained", true);
        reading.take({ bytes, sessionId: this.#sessionId, seq, isDelta: false });
      }
      reading.skipTo(upTo, "not_retained", true);
    }
    const isBehind = isEnd || spans.some((span) => span.lastSeq >= held - 1 || isForeign(span));
    if (reading.next < held && !isBehind) return false;
    if (this.#lost !== undefined && reading.next < held) {
      reading.skipTo(Math.min(this.#lost.from, held), "not_retained");
      reading.skipTo(Math.min(this.#lost.to + 1, held), this.#lost.reason);
    }
    reading.skipTo(held, "not_retained");
    return true;
  }
}

class Reading implements LogChunk {
  readonly items: LogItem[] = [];
  next: number;
  size = 0;

  constructor(after: number) {
    this.next = after + 1;
  }

  get upTo(): number {
    return this.next - 1;
  }

  take(frame: Frame): void {
    this.items.push({ kind: "frame", frame });
    this.next = frame.seq + 1;
    this.size += frame.bytes.length;
  }

  /** Records that the numbers before `seq` have no frames. */
  skipTo(seq: number, reason: Gap["reason"], onlyDeltas = false): void {
    if (seq <= this.next) return;
    const last = this.items.at(-1);
    const gap: Gap = { from: this.next, to: seq - 1, reason, ...(onlyDeltas ? { onlyDeltas } : {}) };
    this.next = seq;
    if (last?.kind === "gap" && last.gap.reason === reason && last.gap.onlyDeltas === gap.onlyDeltas) {
      this.items[this.items.length - 1] = { kind: "gap", gap: { ...last.gap, to: gap.to } };
    } else this.items.push({ kind: "gap", gap });
  }
}

/** The number of a frame that was read from the store. */
function seqOf(bytes: Buffer, eventHeadLength: number): number {
  const key = '"seq":';
  const at = bytes.indexOf(key, 0, "latin1");
  const start = at === -1 ? eventHeadLength : at + key.length;
  let seq = 0;
  for (let i = start; i < bytes.length; i += 1) {
    const digit = (bytes[i] as number) - 0x30;
    if (digit < 0 || digit > 9) break;
    seq = seq * 10 + digit;
  }
  return seq;
}

/** Session ids use a plain alphabet, so they need no escaping. */
function head(method: NotificationName, sessionId: string): string {
  return `{"jsonrpc":"2.0","method":"${method}","params":{"sessionId":"${sessionId}","seq":`;
}
