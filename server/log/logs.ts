import { MemoryBudget } from "../core/memory-budget.ts";
import type { SeqNumbers } from "../core/seq-numbers.ts";
import { EventTail } from "../store/event-tail.ts";
import type { EventStore } from "../store/events.ts";
import { EventLog } from "./event-log.ts";
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

/** Approximate size of a row that stores a stretch. */
const maxRecoveredRowBytes = 1024 * 1024;

/** The logs of all sessions, with their shared limits and writer. */
export class Logs {
  readonly #store: EventStore;
  readonly #limits: LogLimits;
  readonly #totals = { appended: 0 };
  readonly #budget: MemoryBudget;
  readonly #tail: EventTail | undefined;
  readonly #writer: LogWriter;

  /** `tail`: keeps unstored frames for the next daemon; optional. */
  constructor(store: EventStore, limits: LogLimits, tail?: EventTail) {
    this.#store = store;
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
      await store.put(sessionId, from, to, frames);
    };
    for (const { sessionId, epoch, from, seq, frame } of EventTail.left(directory)) {
      const log = recorded.get(sessionId);
      if (log?.epoch !== epoch || seq > log.reservedSeq) continue;
      const known = stretches.get(sessionId);
      const stored = store.newest(sessionId) ?? 0;
      if (seq <= (known?.to ?? stored)) continue;
      if (known?.to === from - 1 && known.bytes < maxRecoveredRowBytes) {
        known.frames.push(frame);
        known.to = seq;
        known.bytes += frame.length;
        continue;
      }
      if (known !== undefined) await write(known);
      const begin = Math.max(from, (known?.to ?? stored) + 1);
      stretches.set(sessionId, { sessionId, from: begin, to: seq, frames: [frame], bytes: frame.length });
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
  open(sessionId: string, epoch: string, numbers: SeqNumbers): EventLog {
    const { maxRetainedBytes, maxStoredEventBytes } = this.#limits;
    const log: EventLog = new EventLog({
      sessionId,
      numbers,
      maxRetainedBytes,
      budget: this.#budget,
      totals: this.#totals,
      store: this.#store,
      maxStoredFrameBytes: maxStoredEventBytes,
      onDurable: (from, frame) => {
        this.#writer.note(log, frame.length);
        if (frame.length <= maxStoredEventBytes) this.#tail?.append(epoch, from, frame);
      },
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
