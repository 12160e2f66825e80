import { MemoryBudget } from "../core/memory-budget.ts";
import type { SeqNumbers } from "../core/seq-numbers.ts";
import { EventTail } from "../store/event-tail.ts";
import type { EventStore } from "../store/events.ts";
import { type Continuation, EventLog } from "./event-log.ts";
import { LogWriter } from "./log-writer.ts";

export interface LogLimits {
  /** Memory for the notifications of one session, and of all sessions. */
  readonly maxRetainedBytes: number;
  readonly maxRetainedBytesInAll: number;
  /** How long an event waits to be stored together with others. */
  readonly storeAfterMs: number;
  /** A session with more unstored bytes is written immediately. */
  readonly maxUnstoredBytes: number;
  /** A larger event is kept in memory only. */
  readonly maxStoredEventBytes: number;
}

/** Consecutive events of one session. */
interface Stretch {
  readonly sessionId: string;
  readonly from: number;
  to: number;
  readonly frames: Buffer[];
  bytes: number;
}

/** The log fields of a session's record. */
export interface RecordedLog {
  readonly epoch: string | undefined;
  /** The highest number that may have been used. */
  readonly reservedSeq: number;
}

export interface OpenLogOptions {
  /** Its child still runs. Default: a new part of the log begins. */
  readonly continuation?: Continuation | undefined;
  /** The frame that is told next was not written: a later daemon cannot continue the log. Must not append to it. */
  readonly onUnwritten?: () => void;
}

/** Approximate size of a row that stores a stretch. */
const maxRecoveredRowBytes = 1024 * 1024;

const tooLargeHead = '{"jsonrpc":"2.0","method":"session/gap",';

/** The logs of all sessions, with their shared limits and writer. */
export class Logs {
  readonly #store: EventStore;
  readonly #limits: LogLimits;
  readonly #totals = { appended: 0 };
  readonly #budget: MemoryBudget;
  readonly #tail: EventTail | undefined;
  readonly #writer: LogWriter;
  readonly #isRecovered: boolean;

  /**
   * `tail`: keeps unstored frames for the next daemon; optional. `isRecovered`: whether the store has all frames of the
   * former daemon, so that its logs can be continued.
   */
  constructor(store: EventStore, limits: LogLimits, tail?: EventTail, isRecovered = true) {
    this.#store = store;
    this.#isRecovered = isRecovered;
    this.#limits = limits;
    this.#tail = tail;
    this.#budget = new MemoryBudget(limits.maxRetainedBytesInAll);
    const { storeAfterMs: afterMs, maxUnstoredBytes } = limits;
    this.#writer = new LogWriter({ afterMs, maxUnstoredBytes, seal: () => tail?.seal() });
  }

  /**
   * Stores the frames that an earlier daemon sent but did not store. Call this before any log is opened. Rejects
   * where the tail cannot be read or stored; the tail then stays for a later daemon. Numbers that were used without a
   * reservation are dropped: the log continues below them. `recorded`: the log of each existing session. Frames of
   * other sessions, and of an earlier session with the same id, are dropped, because no client can request them.
   */
  static async recover(
    store: EventStore,
    directory: string,
    recorded: ReadonlyMap<string, RecordedLog>,
  ): Promise<void> {
    for (const [sessionId, { reservedSeq }] of recorded) await store.cut(sessionId, reservedSeq);
    const stretches = new Map<string, Stretch>();
    const write = async ({ sessionId, from, to, frames }: Stretch): Promise<void> => {
      if (from <= to) await store.put(sessionId, from, to, frames);
    };
    for (const { sessionId, epoch, from, seq, frame } of EventTail.left(directory)) {
      const log = recorded.get(sessionId);
      if (log?.epoch !== epoch || seq > log.reservedSeq) continue;
      const known = stretches.get(sessionId);
      const newest = known?.to ?? store.newest(sessionId) ?? 0;
      if (seq <= newest) continue;
      const isTooLarge = isTooLargeFrame(frame);
      const frames = isTooLarge ? [] : [frame];
      const to = isTooLarge ? seq - 1 : seq;
      if (known?.to === from - 1 && known.bytes < maxRecoveredRowBytes) {
        known.frames.push(...frames);
        known.to = to;
        known.bytes += frame.length;
      } else {
        if (known !== undefined) await write(known);
        const begin = Math.max(from, newest + 1);
        stretches.set(sessionId, { sessionId, from: begin, to, frames, bytes: frame.length });
      }
      if (!isTooLarge) continue;
      await write(stretches.get(sessionId) as Stretch);
      await store.putGap(sessionId, { from: seq, to: seq, reason: "not_retained" });
      stretches.set(sessionId, { sessionId, from: seq + 1, to: seq, frames: [], bytes: 0 });
    }
    for (const stretch of stretches.values()) await write(stretch);
    EventTail.clear(directory);
  }

  /** Total number of notifications since the start. */
  get appended(): number {
    return this.#totals.appended;
  }

  /** Bytes that all logs hold in memory. */
  get retainedBytes(): number {
    return this.#budget.bytes;
  }

  /** `epoch` identifies the log. */
  open(
    sessionId: string,
    epoch: string,
    numbers: SeqNumbers,
    { continuation, onUnwritten }: OpenLogOptions = {},
  ): EventLog {
    const { maxRetainedBytes, maxStoredEventBytes } = this.#limits;
    const log: EventLog = new EventLog({
      sessionId,
      numbers,
      maxRetainedBytes,
      budget: this.#budget,
      totals: this.#totals,
      store: this.#store,
      maxStoredFrameBytes: maxStoredEventBytes,
      onDurable: (from, { bytes: frame, seq }, staged) => {
        this.#writer.note(log, frame.length);
        const isStored = frame.length <= maxStoredEventBytes;
        if (!isStored && staged !== undefined) this.#tail?.discard(staged);
        const isWritten = isStored
          ? this.#tail?.append(epoch, from, frame, staged)
          : this.#tail?.append(epoch, from, tooLargeFrame(sessionId, seq));
        if (isWritten === false) onUnwritten?.();
      },
      stage: async (record) => await this.#tail?.stage(record),
      discard: (staged) => this.#tail?.discard(staged),
      isCrowded: () => this.#tail?.isCrowded === true,
      continuation: this.#isRecovered ? continuation : continuation && { ...continuation, isExact: false },
    });
    return log;
  }

  /** Deletes a session's stored log. */
  delete(sessionId: string): Promise<void> {
    return this.#store.delete(sessionId);
  }

  /** Stores what can be stored. */
  async close(): Promise<void> {
    await this.#writer.flush();
    this.#tail?.close();
  }
}

/** Takes the place of a frame that is too large to be stored. */
function tooLargeFrame(sessionId: string, seq: number): Buffer {
  return Buffer.from(`${tooLargeHead}"params":{"sessionId":"${sessionId}","seq":${seq},"at":${Date.now()}}}`);
}

function isTooLargeFrame(frame: Buffer): boolean {
  return frame.toString("latin1", 0, tooLargeHead.length) === tooLargeHead;
}
