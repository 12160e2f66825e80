import type { Gap, MessageOrigin } from "../../protocol/event.ts";
import type { NotificationName } from "../../protocol/notifications.ts";
import type { MemoryBudget } from "../core/memory-budget.ts";
import type { SeqNumbers } from "../core/seq-numbers.ts";
import type { Frame } from "../frames/frame.ts";
import { completed, isLarge } from "../frames/large-record.ts";
import { within } from "../lib/deadline.ts";
import type { StagedBody } from "../store/event-tail.ts";
import type { StoredSpan, StoredSpans } from "../store/events.ts";
import { originFields, Replay, type StoredFrame } from "./replay.ts";
import { Ring } from "./ring.ts";
import { restOf, Said } from "./said.ts";

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
  readonly onDurable: (from: number, frame: Frame, staged?: StagedBody) => void;
  /** Writes a large record before its event. Default: it is written with its event. */
  readonly stage?: (record: Buffer) => Promise<StagedBody | undefined>;
  /** Undoes `stage`. */
  readonly discard?: (staged: StagedBody) => void;
  /** Whether all logs together have much to store. Default: no. */
  readonly isCrowded?: () => boolean;
  /** The session's child still runs: its output is repeated from a place on. Default: a new part of the log begins. */
  readonly continuation?: Continuation | undefined;
}

/** Where pi's repeated output is in the log of a former daemon. */
export interface Continuation {
  /** The number before the first repeated byte. */
  readonly seq: number;
  /** Notifications of the daemon after this number can be claimed. */
  readonly saidAfter: number;
  /** Whether the stored log has everything but deltas. Otherwise the records get new numbers. Default: it has. */
  readonly isExact?: boolean;
  /** The log and pi's output differ: the next record gets the number after `seq`, which no former daemon used. */
  readonly onMismatch?: (why: string, seq: number) => void;
}

/** A frame, or a gap with its reason. */
export type LogItem = { readonly kind: "frame"; readonly frame: Frame } | { readonly kind: "gap"; readonly gap: Gap };

/** Part of the log. Its items cover every number after `after`, up to `upTo`. */
export interface LogChunk {
  readonly items: readonly LogItem[];
  readonly upTo: number;
}

/** How long a child's output waits for a store that does not respond. */
const maxHoldMs = 5_000;

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
  #lost: Gap | undefined;
  /** Whether rows above the base are stored. Their numbers were never reserved, and could not be deleted yet. */
  #hasForeign: boolean;
  /** Every frame to be stored is stored up to this number. */
  #stored: number;
  #storing: Promise<boolean> | undefined;
  /** Resolves when the next row is stored. */
  #nextStored: PromiseWithResolvers<void> | undefined;
  #isClosed = false;
  /** Bytes in memory after the newest stored row, if some of them must be stored. */
  #lag = 0;
  /** The store fails or does not respond: the child's output no longer waits for it. */
  #isStoreDown = false;
  /** The record that is appended next, if it is large. */
  #staged: { readonly record: Buffer; readonly body: StagedBody } | undefined;
  /** The newest number, and the newest of a frame to be stored. */
  #newest: number;
  #covered: number;
  /** Set until pi's output is no longer a repetition. */
  #replay: Replay | undefined;
  #said: Said | undefined;
  /** Numbers that a former daemon gave to deltas after the newest stored number. */
  #deltas: { readonly from: number; readonly to: number } | undefined;

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
    this.#newest = this.#base;
    this.#covered = this.#base;
    this.#stored = newest ?? 0;
    this.#lost = this.#unstored(newest);
    if (options.continuation !== undefined) this.#continue(options.continuation, newest);
  }

  /** The newest seq; 0 before the first. */
  get cursor(): number {
    return this.#numbers.last;
  }

  /** Numbers that an earlier daemon used, or may have used, but did not store. */
  get lost(): Gap | undefined {
    return this.#lost;
  }

  /** Whether pi's output is a repetition, whose numbers the log has or may have told. */
  get isReplaying(): boolean {
    return this.#replay !== undefined;
  }

  /** The newest number that may have been told. */
  get reach(): number {
    return this.#replay === undefined ? this.cursor : this.#base;
  }

  /** Notifications that a former daemon told, until {@link forgetSaid}. */
  get said(): Said | undefined {
    return this.#said;
  }

  /** Bytes in memory. */
  get retainedBytes(): number {
    return this.#ring.bytes;
  }

  /** Prepares a large record that is not a delta: it is written without blocking the event loop, before it is appended. */
  async stage(record: Buffer): Promise<void> {
    const { stage, maxStoredFrameBytes } = this.#options;
    if (stage === undefined || this.#isClosed || record.length > maxStoredFrameBytes - 2 * middleBytes) return;
    // It is stored.
    if (this.#replay !== undefined && this.cursor < this.#replay.newest) return;
    const body = await stage(record);
    this.#unstage();
    if (body === undefined) return;
    this.#staged = { record, body };
    if (this.#isClosed) this.#unstage();
  }

  /** Wraps a record of pi. The frame must not be changed; it stays valid while referenced. */
  appendEvent(record: Buffer, generation: number, isDelta: boolean, origin: MessageOrigin = {}): Frame {
    this.#totals.appended += 1;
    if (this.#replay !== undefined) {
      const frame = this.#replayed(this.#replay, record, generation, isDelta);
      if (frame !== undefined) return frame;
    }
    const facts = { generation, isDelta, fields: originFields(origin) };
    const frame = this.#event(this.#numbers.next(), Date.now(), record, facts);
    const body = this.#staged?.record === record ? this.#staged.body : undefined;
    if (body !== undefined) this.#staged = undefined;
    return this.#added(frame, body);
  }

  /** Everything that a former daemon may have sent was repeated. */
  replayed(): void {
    const replay = this.#replay;
    if (replay === undefined) return;
    this.#takeOwn(replay, true);
    if (this.cursor < replay.newest) this.#mismatch(`Number ${this.cursor + 1} is not repeated in pi's output.`);
    this.#replay = undefined;
  }

  /** The log goes on with new numbers. */
  cannotContinue(why: string): void {
    if (this.#replay !== undefined) this.#mismatch(why);
  }

  /** Later notifications are not compared with those of a former daemon. */
  forgetSaid(): void {
    this.#said = undefined;
  }

  /**
   * A promise while the frames in memory must be stored before more are appended, or a large record with `bytes`:
   * otherwise they would be forgotten first. Undefined: there is room. Never rejects. It waits until a quarter of the
   * memory is unstored, or a large record fits, so that the child is not held again at once. Also reserves numbers.
   */
  room(bytes = 0): Promise<void> | undefined {
    this.#numbers.prepare();
    const { isCrowded, maxRetainedBytes } = this.#options;
    if (this.#lag === 0 || this.#isStoreDown || this.#isClosed) return undefined;
    const fits = this.#lag + Math.max(bytes, maxRetainedBytes / 2) <= maxRetainedBytes;
    const crowded = isCrowded?.() === true;
    if (fits && !crowded) return undefined;
    return this.#storedInTime(crowded ? 0 : Math.max(0, maxRetainedBytes - Math.max(bytes, maxRetainedBytes * 0.75)));
  }

  async #storedInTime(maxLag: number): Promise<void> {
    const storing = this.persist();
    const outcome = await within(this.#storedUpTo(maxLag, storing), maxHoldMs);
    if (outcome.kind !== "timeout") return;
    this.#isStoreDown = true;
    void storing.then((succeeded) => {
      this.#isStoreDown = !succeeded;
    });
  }

  /** Resolves when at most `maxLag` bytes are left, or when nothing more is being stored. */
  async #storedUpTo(maxLag: number, storing: Promise<boolean>): Promise<void> {
    while (this.#lag > maxLag && this.#storing === storing) {
      this.#nextStored ??= Promise.withResolvers();
      await Promise.race([this.#nextStored.promise, storing]);
    }
  }

  /** Wraps a notification of the daemon. `sessionId`, `seq` and `at` are added before `params`. */
  append(method: NotificationName, params: Readonly<Record<string, unknown>>): Frame {
    this.#totals.appended += 1;
    const seq = this.#numbers.next();
    const text = `${head(method, this.#sessionId)}${seq},"at":${Date.now()}${restOf(params)}`;
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
  holdsFrom(from: number): boolean {
    const { from: start, to } = this.#deltas ?? { from: 0, to: -1 };
    const seq = from >= start && from <= to ? to + 1 : from;
    if (seq >= (this.#ring.oldest ?? this.cursor + 1)) return true;
    const { spans } = this.#options.store.read(this.#sessionId, seq - 1, 1);
    const [first] = spans;
    return first !== undefined && first.gap === undefined && first.firstSeq <= seq;
  }

  /** Visits stored and buffered events, newest first, until `look` returns true. */
  lookBack(look: (frame: Buffer) => boolean): void {
    // What is repeated is stored, up to the former daemon's newest frame.
    const held = this.#replay === undefined ? (this.#ring.oldest ?? this.cursor + 1) : this.#replay.newest + 1;
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
    if (this.#replay !== undefined) return;
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
    this.#unstage();
    this.#ring.clear();
  }

  #continue({ seq, saidAfter, isExact = true }: Continuation, newest: number | undefined): void {
    const { store } = this.#options;
    const stored = newest ?? 0;
    try {
      this.#said = new Said(store, this.#sessionId, saidAfter, stored);
    } catch {
      this.#mismatch("The stored log cannot be read.");
      return;
    }
    if (!isExact) this.#mismatch("The log of the former daemon has gaps.");
    else if (seq > this.#base) this.#mismatch(`Number ${seq} was not reserved.`);
    else if (newest === undefined && seq > 0) this.#mismatch("The log is not stored.");
    else {
      const replay = new Replay(store, this.#sessionId, seq, stored);
      this.#replay = replay;
      this.#lost = undefined;
      this.#numbers.moveTo(seq);
      this.#newest = seq;
      this.#covered = stored;
      if (stored < seq) this.#deltas = { from: stored + 1, to: seq };
      this.#takeOwn(replay);
    }
  }

  /** The numbers between the newest stored one and the base. */
  #unstored(newest: number | undefined): Gap | undefined {
    if ((newest ?? 0) >= this.#base) return undefined;
    const reason = newest === undefined ? "not_retained" : "daemon_restart";
    return { from: (newest ?? 0) + 1, to: this.#base, reason };
  }

  /** The log goes on with numbers that no former daemon used. */
  #mismatch(why: string): void {
    const { store, continuation } = this.#options;
    const newest = store.newest(this.#sessionId, this.#base);
    this.#replay = undefined;
    this.#deltas = undefined;
    this.#ring.clear();
    this.#numbers.moveTo(this.#base);
    this.#newest = this.#base;
    this.#covered = this.#base;
    this.#lost = this.#unstored(newest);
    continuation?.onMismatch?.(why, this.#base);
  }

  /** Appends the daemon's own notifications that the log has under the next numbers. */
  #takeOwn(replay: Replay, isEnd = false): void {
    while (this.cursor < replay.newest) {
      const frame = replay.own(this.cursor + 1, isEnd);
      if (frame === undefined) return;
      this.#take(frame);
    }
  }

  /** Takes a stored frame into memory. */
  #take({ bytes: stored, seq }: StoredFrame): void {
    this.#totals.appended += 1;
    const { bytes, start } = this.#ring.room(seq, stored.length);
    this.#ring.close(start + stored.copy(bytes, start), seq, false);
    this.#numbers.moveTo(seq);
    this.#newest = seq;
  }

  #maxFrameBytes({ length }: Buffer, fields = ""): number {
    return this.#eventHead.length + middleBytes + fields.length + length + tail.length;
  }

  /** Puts a record of pi into its envelope. */
  #event(seq: number, time: number, record: Buffer, { generation, isDelta, fields }: EventFacts): Frame {
    const middle = `${seq},"at":${time},"generation":${generation}${fields},"event":`;
    const inPlace = isLarge(record) ? completed(record, this.#eventHead.toString("latin1") + middle, tail) : undefined;
    if (inPlace !== undefined) return this.#ring.adopt(inPlace, seq, isDelta);
    const { bytes, start } = this.#ring.room(seq, this.#maxFrameBytes(record, fields));
    let at = start + this.#eventHead.copy(bytes, start);
    at += bytes.write(middle, at, "latin1");
    at += record.copy(bytes, at);
    at += tail.copy(bytes, at);
    return this.#ring.close(at, seq, isDelta);
  }

  /** Appends a repeated record under its number. Undefined: it needs a new one. */
  #replayed(replay: Replay, record: Buffer, generation: number, isDelta: boolean): Frame | undefined {
    while (this.cursor < replay.newest) {
      const seq = this.cursor + 1;
      const isTooLarge = this.#maxFrameBytes(record) > this.#options.maxStoredFrameBytes;
      const placed = replay.place({ seq, record, generation, isDelta, isTooLarge });
      if (placed.kind === "own") {
        this.#take(placed.frame);
        continue;
      }
      if (placed.kind === "mismatch") {
        this.#mismatch(placed.why);
        return undefined;
      }
      const frame = this.#event(seq, placed.at, record, { generation, ...placed });
      this.#numbers.moveTo(seq);
      this.#newest = seq;
      this.#takeOwn(replay);
      return frame;
    }
    return undefined;
  }

  #unstage(): void {
    if (this.#staged !== undefined) this.#options.discard?.(this.#staged.body);
    this.#staged = undefined;
  }

  #added(frame: Frame, staged?: StagedBody): Frame {
    const { seq, bytes, isDelta } = frame;
    // After a jump.
    if (seq > this.#newest + 1) this.#covered = seq - 1;
    this.#newest = seq;
    if (!isDelta || this.#lag > 0) this.#lag += bytes.length;
    if (isDelta) return frame;
    this.#options.onDurable(this.#covered + 1, frame, staged);
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
        if (typeof frames === "string") {
          const reason = frames === "jump" ? "store_failed" : "not_retained";
          await store.putGap(this.#sessionId, { from: firstSeq, to: lastSeq, reason });
        } else await store.put(this.#sessionId, firstSeq, lastSeq, frames);
        this.#stored = lastSeq;
        this.#lag = this.#covered > lastSeq ? this.#ring.bytesFrom(lastSeq + 1) : 0;
        this.#nextStored?.resolve();
        this.#nextStored = undefined;
      }
      this.#lag = 0;
      this.#isStoreDown = false;
      return true;
    } catch {
      this.#isStoreDown = true;
      // The store has logged the error. Frames that are still in memory are tried again.
      return false;
    }
  }

  /** The next numbers to store, with their frames. */
  #nextRow(): { firstSeq: number; lastSeq: number; frames: Buffer[] | "jump" | "too_large" | "forgotten" } {
    const { maxStoredFrameBytes } = this.#options;
    const firstSeq = this.#stored + 1;
    const held = this.#ring.oldest ?? this.cursor + 1;
    let lastSeq = Math.max(firstSeq - 1, this.#deltas?.to ?? 0);
    // These frames were dropped from memory before they could be stored.
    if (lastSeq + 1 < held) return { firstSeq, lastSeq: held - 1, frames: "forgotten" };
    const frames: Buffer[] = [];
    let size = 0;
    for (const { bytes, firstSeq: from, seq } of this.#ring.withoutDeltas(lastSeq + 1)) {
      if (from > lastSeq + 1) {
        if (lastSeq >= firstSeq) break;
        return { firstSeq, lastSeq: from - 1, frames: "jump" };
      }
      // Deltas before it, or after the last one.
      lastSeq = bytes === undefined ? seq : seq - 1;
      if (bytes === undefined) continue;
      if (bytes.length > maxStoredFrameBytes) {
        if (lastSeq >= firstSeq) break;
        return { firstSeq, lastSeq: seq, frames: "too_large" };
      }
      // A large frame is a row of its own, because it is stored without a copy.
      if (size > 0 && (size + bytes.length > maxRowBytes || isLarge(bytes))) break;
      lastSeq = seq;
      frames.push(bytes);
      size += isLarge(bytes) ? maxRowBytes : bytes.length;
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
    if (this.#deltas !== undefined && reading.next <= this.#deltas.to) {
      reading.skipTo(Math.min(this.#deltas.from, held), "not_retained");
      reading.skipTo(Math.min(this.#deltas.to + 1, held), "not_retained", true);
    }
    if (this.#lost !== undefined && reading.next < held) {
      reading.skipTo(Math.min(this.#lost.from, held), "not_retained");
      reading.skipTo(Math.min(this.#lost.to + 1, held), this.#lost.reason);
    }
    reading.skipTo(held, "not_retained");
    return true;
  }
}

/** What the envelope of a record says of it. */
interface EventFacts {
  readonly generation: number;
  readonly isDelta: boolean;
  /** {@link originFields} */
  readonly fields: string;
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
