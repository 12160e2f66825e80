import { MemoryBudget } from "../core/memory-budget.ts";
import type { SeqNumbers } from "../core/seq-numbers.ts";
import { EventTail } from "../store/event-tail.ts";
import type { EventStore } from "../store/events.ts";
import { EventLog } from "./event-log.ts";
import { LogWriter } from "./log-writer.ts";

export interface LogLimits {
  /** What is kept in memory of one session's notifications, and of all sessions'. */
  readonly maxRetainedBytes: number;
  readonly maxRetainedBytesInAll: number;
  /** How long an event waits to be stored, together with others. */
  readonly storeAfterMs: number;
  /** So much of one session waits for nothing. */
  readonly maxUnstoredBytes: number;
  /** A larger event is kept in memory alone. */
  readonly maxStoredEventBytes: number;
}

/** Events of one session that follow each other. */
interface Stretch {
  readonly sessionId: string;
  readonly from: number;
  to: number;
  readonly frames: Buffer[];
  bytes: number;
}

/** A session's log, as the session's record has it. */
export interface RecordedLog {
  readonly epoch: string | undefined;
  /** The highest number that may have been given. */
  readonly reservedSeq: number;
}

/** A stretch is stored in rows of about so many bytes. */
const maxRecoveredRowBytes = 1024 * 1024;

/** The logs of all sessions: what they have in common. */
export class Logs {
  readonly #store: EventStore;
  readonly #limits: LogLimits;
  readonly #totals = { appended: 0 };
  readonly #budget: MemoryBudget;
  readonly #tail: EventTail | undefined;
  readonly #writer: LogWriter;

  /** `tail`: where what is not stored yet is kept for a next daemon, if at all. */
  constructor(store: EventStore, limits: LogLimits, tail?: EventTail) {
    this.#store = store;
    this.#limits = limits;
    this.#tail = tail;
    this.#budget = new MemoryBudget(limits.maxRetainedBytesInAll);
    const { storeAfterMs: afterMs, maxUnstoredBytes } = limits;
    this.#writer = new LogWriter({ afterMs, maxUnstoredBytes, seal: () => tail?.seal() });
  }

  /**
   * Stores what an earlier daemon had told and not stored. To be called before any log is opened. Rejects where it cannot
   * be read or stored: it stays where it is then, for a later daemon. Numbers that were given while none could be
   * reserved are forgotten: the log goes on below them. `recorded`: the log of each session that there is. What is of any
   * other session goes too, and what is of an earlier one of the same id: nobody could ask for it.
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

  /** Notifications that were numbered, ever. */
  get appended(): number {
    return this.#totals.appended;
  }

  /** What all of them have in memory. */
  get retainedBytes(): number {
    return this.#budget.bytes;
  }

  /** `epoch` names the log. */
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

  /** Forgets what is stored of a session. */
  delete(sessionId: string): Promise<void> {
    return this.#store.delete(sessionId);
  }

  /** Everything is stored, as far as it could be. */
  async close(): Promise<void> {
    await this.#writer.flush();
    this.#tail?.close();
  }
}
