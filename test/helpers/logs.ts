import type { Gap } from "../../protocol/event.ts";
import { MemoryBudget } from "../../server/core/memory-budget.ts";
import { SeqNumbers, type SeqReserve } from "../../server/core/seq-numbers.ts";
import { EventLog, type EventLogOptions, type LogStore } from "../../server/log/event-log.ts";
import type { StoredSpan } from "../../server/store/events.ts";

/** A store of logs in memory, whose limits the test controls. */
export interface MemoryStore extends LogStore {
  readonly spans: StoredSpan[];
  /** Whether writes fail. */
  fails: boolean;
}

export function memoryStore(): MemoryStore {
  const spans: StoredSpan[] = [];
  const store: MemoryStore = {
    spans,
    fails: false,
    newest: (_id, upTo = Number.MAX_SAFE_INTEGER) => spans.findLast(({ lastSeq }) => lastSeq <= upTo)?.lastSeq,
    cut: async (_id, upTo) => {
      if (store.fails) throw new Error("the store fails");
      spans.splice(0, spans.length, ...spans.filter(({ lastSeq }) => lastSeq <= upTo));
    },
    put: async (_id, firstSeq, lastSeq, frames) =>
      add({ firstSeq, lastSeq, frames: frames.map((one) => Buffer.from(one)) }),
    putGap: async (_id, { from, to, reason }: Gap) => add({ firstSeq: from, lastSeq: to, gap: reason, frames: [] }),
    read: (_id, after, maxBytes) => {
      const behind = spans.filter(({ lastSeq }) => lastSeq > after);
      let size = 0;
      const taken = behind.filter(({ frames }) => {
        const hasRoom = size < maxBytes;
        for (const frame of frames) size += frame.length;
        return hasRoom;
      });
      return { spans: taken, isEnd: taken.length === behind.length && size < maxBytes };
    },
    readBack: (_id, before) => spans.filter(({ firstSeq }) => firstSeq < before).reverse(),
  };
  function add(span: StoredSpan): void {
    if (store.fails) throw new Error("the store fails");
    spans.push(span);
  }
  return store;
}

/** A reservation of numbers that is on disk immediately. */
export function reserveFrom(reserved = 0): SeqReserve {
  return { reserved, reserve: () => Promise.resolve(), flush: () => true };
}

export function memoryLog(options: Partial<EventLogOptions> = {}): EventLog {
  return new EventLog({
    sessionId: "s-1",
    numbers: new SeqNumbers(reserveFrom()),
    maxRetainedBytes: 1 << 20,
    budget: new MemoryBudget(1 << 30),
    store: memoryStore(),
    maxStoredFrameBytes: 1 << 20,
    onDurable: () => {},
    ...options,
  });
}
