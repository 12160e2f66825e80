import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import fc from "fast-check";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import type { Gap } from "../../../protocol/event.ts";
import { MemoryBudget } from "../../../server/core/memory-budget.ts";
import { SeqNumbers } from "../../../server/core/seq-numbers.ts";
import type { Frame } from "../../../server/frames/frame.ts";
import { largeRecord, largeRecordBytes } from "../../../server/frames/large-record.ts";
import type { EventLog, LogChunk, LogStore } from "../../../server/log/event-log.ts";
import { memoryLog, memoryStore, reserveFrom } from "../../helpers/logs.ts";
import { patience } from "../../helpers/patience.ts";

interface Notification {
  readonly method: string;
  readonly params: { readonly sessionId: string; readonly seq: number; readonly [key: string]: unknown };
}

const parse = ({ bytes }: Pick<Frame, "bytes">): Notification => JSON.parse(bytes.toString("utf8")) as Notification;
const record = (value: unknown): Buffer => Buffer.from(JSON.stringify(value));
const framesOf = ({ items }: LogChunk): Frame[] => items.flatMap((item) => (item.kind === "frame" ? [item.frame] : []));
const gapsOf = ({ items }: LogChunk): Gap[] => items.flatMap((item) => (item.kind === "gap" ? [item.gap] : []));
const everything = Number.MAX_SAFE_INTEGER;

/** Accepts everything and keeps nothing. */
const forgetful: LogStore = { ...memoryStore(), put: async () => {}, newest: () => undefined };

function collect(): void {
  setFlagsFromString("--expose-gc");
  (runInNewContext("gc") as () => void)();
}

/** Like a killed daemon and its successor, which knows only the last reserved number. */
function nextLife(log: EventLog, store = memoryStore(), bound = 1 << 20): EventLog {
  const numbers = new SeqNumbers(reserveFrom(log.cursor + 100));
  return memoryLog({ store, numbers, maxRetainedBytes: bound });
}

test("numbers are reserved before a record, and not in the middle of it", async () => {
  let isInRecord = false;
  let inRecords = 0;
  const reserve = reserveFrom(0);
  const flush = (upTo: number): boolean => {
    if (isInRecord) inRecords += 1;
    return reserve.flush(upTo);
  };
  const log = memoryLog({ store: memoryStore(), numbers: new SeqNumbers({ ...reserve, flush }) });
  for (let n = 0; n < 3 * 65_536; n += 1) {
    void log.room();
    isInRecord = true;
    log.appendEvent(record({ type: "message_update" }), 1, true);
    isInRecord = false;
  }
  expect(inRecords).toBe(0);
});

const step = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.record({ kind: fc.constant("append" as const), isDelta: fc.boolean(), size: fc.nat(9_000) }),
  },
  { weight: 3, arbitrary: fc.constant({ kind: "persist" } as const) },
  { weight: 1, arbitrary: fc.constant({ kind: "rest" } as const) },
  { weight: 1, arbitrary: fc.constant({ kind: "kill" } as const) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("forget" as const), rows: fc.nat(3) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("fail" as const), fails: fc.boolean() }) },
);

type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

/** A log over the lives of several daemons, and its reported frames. */
class LogLives {
  readonly #store = memoryStore();
  readonly #bound: number;
  readonly #told = new Map<number, { readonly bytes: string; readonly isDelta: boolean }>();
  log: EventLog;

  constructor(bound: number) {
    this.#bound = bound;
    this.log = memoryLog({ store: this.#store, maxRetainedBytes: bound, maxStoredFrameBytes: 8_000 });
  }

  async step(each: Step): Promise<void> {
    const { spans } = this.#store;
    switch (each.kind) {
      case "append": {
        const { seq, bytes } = this.log.appendEvent(record({ text: "y".repeat(each.size) }), 1, each.isDelta);
        this.#told.set(seq, { bytes: bytes.toString("utf8"), isDelta: each.isDelta });
        return;
      }
      case "persist":
        return void (await this.log.persist());
      case "rest":
        return await this.log.rest();
      case "kill":
        this.log = nextLife(this.log, this.#store, this.#bound);
        return;
      case "forget":
        // The newest always stays.
        spans.splice(0, Math.min(each.rows, Math.max(0, spans.length - 1)));
        return;
      case "fail":
        this.#store.fails = each.fails;
    }
  }

  /** Reads it to its end, and checks each number. */
  readFrom(after: number, size: number): void {
    let next = after + 1;
    for (let position = after; position < this.log.cursor; ) {
      const { items, upTo } = this.log.read(position, size);
      expect(upTo).toBeGreaterThan(position);
      for (const item of items)
        next = item.kind === "frame" ? this.#frame(item.frame, next) : this.#gap(item.gap, next);
      expect(next).toBe(upTo + 1);
      position = upTo;
    }
    expect(next).toBe(this.log.cursor + 1);
  }

  #frame({ seq, bytes, isDelta }: Frame, next: number): number {
    expect(seq).toBe(next);
    expect(this.#told.get(seq)).toEqual({ bytes: bytes.toString("utf8"), isDelta });
    return seq + 1;
  }

  #gap({ from, to, onlyDeltas }: Gap, next: number): number {
    expect(from).toBe(next);
    if (onlyDeltas === true) for (let seq = from; seq <= to; seq += 1) expect(this.#told.get(seq)?.isDelta).toBe(true);
    return to + 1;
  }
}

describe("EventLog", () => {
  test("wraps pi's exact bytes in an envelope with the next seq", () => {
    const text = '{"type":"x", "text":"ä\u2028","n":1.0}';
    const log = memoryLog();
    log.appendEvent(Buffer.from('{"type":"first"}'), 1, false);
    const frame = log.appendEvent(Buffer.from(text), 3, false);
    expect(frame).toMatchObject({ sessionId: "s-1", seq: 2, isDelta: false });
    expect(frame.bytes.includes(text)).toBe(true);
    expect(parse(frame)).toMatchObject({
      jsonrpc: "2.0",
      method: "session/event",
      params: { sessionId: "s-1", seq: 2, generation: 3, event: { type: "x", text: "ä\u2028", n: 1 } },
    });
  });

  test("names the prompt and the client of a message in its envelope, whatever the client's name", () => {
    const by = { clientId: "editor-of-ada", name: 'Ädä","event":{"type":"x"}} 🙂\u2029' };
    const log = memoryLog();
    const message = record({ type: "message_end" });
    for (const origin of [{ promptId: "p-1", by }, { by }, { promptId: "p-1" }]) {
      const { params } = parse(log.appendEvent(message, 1, false, origin));
      expect(params).toEqual({
        ...origin,
        sessionId: "s-1",
        seq: log.cursor,
        at: params["at"],
        generation: 1,
        event: JSON.parse(message.toString()),
      });
    }
  });

  test("numbers the daemon's own notifications in the same sequence", () => {
    const log = memoryLog();
    log.appendEvent(record({}), 1, true);
    expect(parse(log.append("delivery/updated", { delivery: { state: "held" } }))).toMatchObject({
      method: "delivery/updated",
      params: { sessionId: "s-1", seq: 2, delivery: { state: "held" } },
    });
    expect(parse(log.append("session/updated", {})).params.seq).toBe(3);
    expect(log.cursor).toBe(3);
  });

  test("returns exactly the events after a cursor, at most as many as requested", () => {
    const log = memoryLog();
    for (let i = 1; i <= 5; i += 1) log.appendEvent(record({ i }), 1, i % 2 === 0);
    const chunk = log.read(2, everything);
    expect(framesOf(chunk).map(({ seq, isDelta }) => [seq, isDelta])).toEqual([
      [3, false],
      [4, true],
      [5, false],
    ]);
    expect(log.read(2, 1)).toMatchObject({ upTo: 3 });
    expect(log.read(5, everything)).toMatchObject({ items: [], upTo: 5 });
  });

  test("reads the reports of an earlier daemon from the store, and names the numbers that were not stored", async () => {
    const store = memoryStore();
    const first = memoryLog({ store });
    first.appendEvent(record({ type: "message_start" }), 1, false);
    for (let i = 0; i < 5; i += 1) first.appendEvent(record({ type: "message_update", i }), 1, true);
    first.appendEvent(record({ type: "message_end" }), 1, false);
    await first.persist();
    first.appendEvent(record({ type: "lost" }), 1, false);

    const second = nextLife(first, store);
    expect(second.lost).toEqual({ from: 8, to: 108, reason: "daemon_restart" });
    second.appendEvent(record({ type: "next" }), 2, false);
    const chunk = second.read(0, everything);
    expect(
      framesOf(chunk).map((frame) => [frame.seq, (parse(frame).params["event"] as { type: string }).type]),
    ).toEqual([
      [1, "message_start"],
      [7, "message_end"],
      [109, "next"],
    ]);
    expect(gapsOf(chunk)).toEqual([
      { from: 2, to: 6, reason: "not_retained", onlyDeltas: true },
      { from: 8, to: 108, reason: "daemon_restart" },
    ]);
    // A third daemon returns the same.
    await second.persist();
    expect(gapsOf(nextLife(second, store).read(0, everything)).slice(0, 2)).toEqual(gapsOf(chunk));
  });

  test("leaves no gap after a log that was unloaded, and then uses no memory", async () => {
    const store = memoryStore();
    let onDisk = 0;
    const reserve = async (upTo: number): Promise<void> => {
      onDisk = upTo;
    };
    const log = memoryLog({
      store,
      numbers: new SeqNumbers({ ...reserveFrom(), reserve }),
    });
    for (let i = 0; i < 100; i += 1) log.appendEvent(record({ i, text: "x".repeat(1_000) }), 1, i > 90);
    expect(log.retainedBytes).toBeGreaterThan(100_000);
    await log.rest();
    expect(log.retainedBytes).toBe(0);
    expect(onDisk).toBe(100);
    const next = memoryLog({ store, numbers: new SeqNumbers(reserveFrom(onDisk)) });
    expect(next.lost).toBeUndefined();
    next.appendEvent(record({ type: "next" }), 2, false);
    for (const each of [log, next]) expect(gapsOf(each.read(0, everything))).toMatchObject([{ from: 92, to: 100 }]);
    expect(framesOf(next.read(0, everything)).map(({ seq }) => seq)).toEqual(
      [...Array(91).keys(), 100].map((i) => i + 1),
    );
  });

  test("stores nothing once it is closed", async () => {
    const store = memoryStore();
    const log = memoryLog({ store });
    log.append("session/updated", {});
    log.close();
    log.append("session/updated", {});
    expect(await log.persist()).toBe(true);
    expect(store.spans).toEqual([]);
  });

  test("costs next to nothing while it is unloaded", async () => {
    const before = process.memoryUsage().arrayBuffers;
    const logs = Array.from({ length: 20 }, () => memoryLog({ maxRetainedBytes: 8 << 20, store: forgetful }));
    for (const log of logs) {
      for (let i = 0; i < 1_500; i += 1) log.appendEvent(record({ text: "x".repeat(1_000) }), 1, true);
      await log.rest();
    }
    // Memory outside the heap is released some time after collection.
    await vi.waitFor(() => {
      collect();
      expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(logs.length * 50_000);
    }, patience);
    expect(logs.every(({ retainedBytes }) => retainedBytes === 0)).toBe(true);
  });

  test("names a log without stored events", () => {
    const log = memoryLog({ numbers: new SeqNumbers(reserveFrom(100)) });
    expect(log.lost).toEqual({ from: 1, to: 100, reason: "not_retained" });
    expect(gapsOf(log.read(4, everything))).toEqual([{ from: 5, to: 100, reason: "not_retained" }]);
  });

  test("holds no more in memory than its limit and one segment", () => {
    const log = memoryLog({ maxRetainedBytes: 64 * 1024 });
    for (let i = 0; i < 2_000; i += 1) log.appendEvent(record({ text: "x".repeat(500) }), 1, false);
    expect(log.retainedBytes).toBeLessThanOrEqual(64 * 1024);
    const chunk = log.read(0, everything);
    expect(gapsOf(chunk)).toEqual([{ from: 1, to: (framesOf(chunk)[0]?.seq ?? 0) - 1, reason: "not_retained" }]);
  });

  test("shares one limit with all others: the largest forgets first", () => {
    const budget = new MemoryBudget(256 * 1024);
    const logs = Array.from({ length: 4 }, () => memoryLog({ budget, maxRetainedBytes: 128 * 1024 }));
    const [quiet, ...loud] = logs as [EventLog, ...EventLog[]];
    for (let i = 0; i < 10; i += 1) quiet.appendEvent(record({ text: "x".repeat(500) }), 1, true);
    for (let i = 0; i < 1_000; i += 1) {
      for (const log of loud) log.appendEvent(record({ text: "x".repeat(500) }), 1, true);
      expect(budget.bytes).toBeLessThanOrEqual(256 * 1024);
    }
    expect(budget.bytes).toBe(logs.reduce((sum, log) => sum + log.retainedBytes, 0));
    expect(framesOf(quiet.read(0, everything))).toHaveLength(10);
  });

  test("stores events again after a failed write, as long as it holds them", async () => {
    const store = memoryStore();
    const log = memoryLog({ store });
    log.appendEvent(record({ i: 1 }), 1, false);
    store.fails = true;
    expect(await log.persist()).toBe(false);
    log.appendEvent(record({ i: 2 }), 1, false);
    store.fails = false;
    expect(await log.persist()).toBe(true);
    expect(store.spans.flatMap(({ frames }) => frames)).toHaveLength(2);
  });

  test("records in the store the events that were forgotten before they could be stored", async () => {
    const store = memoryStore();
    const log = memoryLog({ store, maxRetainedBytes: 8 * 1024 });
    for (let i = 0; i < 500; i += 1) log.appendEvent(record({ i, pad: "x".repeat(200) }), 1, false);
    expect(await log.persist()).toBe(true);
    const [first, ...others] = store.spans;
    expect(first).toMatchObject({ firstSeq: 1, gap: "not_retained" });
    expect(others[0]?.firstSeq).toBe((first?.lastSeq ?? 0) + 1);
    expect(others.at(-1)?.lastSeq).toBe(500);
  });

  test("does not change a frame that is still referenced", () => {
    const log = memoryLog({ maxRetainedBytes: 8 * 1024 });
    const { bytes } = log.appendEvent(record({ keep: "me" }), 1, false);
    const text = bytes.toString("utf8");
    for (let i = 0; i < 500; i += 1) log.appendEvent(Buffer.alloc(300, 0x20), 1, false);
    expect(bytes.toString("utf8")).toBe(text);
  });

  test("returns or names every number once, always with the same content, whatever happens to memory, store and daemon", async () => {
    const steps = fc.array(step, { maxLength: 60 });
    const bound = fc.integer({ min: 1, max: 200_000 });
    await fc.assert(
      fc.asyncProperty(steps, bound, fc.nat(), fc.integer({ min: 1, max: 40_000 }), async (taken, max, from, size) => {
        const world = new LogLives(max);
        for (const each of taken) await world.step(each);
        world.readFrom(from % (world.log.cursor + 1), size);
      }),
      { numRuns: 300 },
    );
  });
});

test("unreserved numbers that could not be truncated hide no loss, and the log itself truncates them", async () => {
  const store = memoryStore();
  const row = (seq: number) => [Buffer.from(`{"seq":${seq}}`)];
  await store.put("s-1", 1, 4, row(4));
  await store.put("s-1", 2_000, 2_001, row(2_001));
  const log = memoryLog({ store, numbers: new SeqNumbers(reserveFrom(100)) });
  expect(log.lost).toEqual({ from: 5, to: 100, reason: "daemon_restart" });
  store.fails = true;
  log.append("session/updated", {});
  expect(await log.persist()).toBe(false);
  const { items } = log.read(4, 1 << 20);
  expect(items.map((item) => (item.kind === "gap" ? item.gap : item.frame.seq))).toEqual([
    { from: 5, to: 100, reason: "daemon_restart" },
    101,
  ]);
  store.fails = false;
  expect(await log.persist()).toBe(true);
  expect(store.spans.map(({ firstSeq, lastSeq, gap }) => ({ firstSeq, lastSeq, gap }))).toEqual([
    { firstSeq: 1, lastSeq: 4, gap: undefined },
    { firstSeq: 5, lastSeq: 100, gap: "daemon_restart" },
    { firstSeq: 101, lastSeq: 101, gap: undefined },
  ]);
});

describe("a log with large records", () => {
  const inSpace = (bytes: Buffer): Buffer => {
    const space = largeRecord(bytes.length);
    bytes.copy(space);
    return space;
  };

  test("has the same notifications as for copied records, in memory and in the store", async () => {
    const sizes = fc.array(fc.record({ size: fc.nat(3_000), isLarge: fc.boolean(), isDelta: fc.boolean() }), {
      maxLength: 20,
    });
    await fc.assert(
      fc.asyncProperty(sizes, async (steps) => {
        const store = memoryStore();
        const log = memoryLog({ store });
        const texts = steps.map(({ size, isLarge, isDelta }) => {
          const bytes = record({ text: "é".repeat(size) });
          return parse(log.appendEvent(isLarge ? inSpace(bytes) : bytes, 1, isDelta)).params["event"];
        });
        expect(texts).toEqual(steps.map(({ size }) => ({ text: "é".repeat(size) })));
        expect(framesOf(log.read(0, everything)).map((frame) => parse(frame).params["event"])).toEqual(texts);
        await log.persist();
        const stored = store.spans.flatMap(({ frames }) => frames.map((bytes) => parse({ bytes }).params["event"]));
        expect(stored).toEqual(texts.filter((_, i) => steps[i]?.isDelta === false));
      }),
      { numRuns: 200 },
    );
  });

  test("has room only after the store has taken what memory cannot keep, and forgets nothing before", async () => {
    const store = memoryStore();
    const slow: LogStore = {
      ...store,
      put: async (...span) => {
        await new Promise((resolve) => setImmediate(resolve));
        await store.put(...span);
      },
    };
    const log = memoryLog({ store: slow, maxRetainedBytes: 64 * 1024 });
    let held = 0;
    for (let i = 0; i < 40; i += 1) {
      const room = log.room();
      if (room !== undefined) held += 1;
      await room;
      log.appendEvent(inSpace(record({ text: "x".repeat(24_000) })), 1, i % 3 === 1);
    }
    await log.persist();
    expect(held).toBeGreaterThan(0);
    expect(store.spans.flatMap(({ frames }) => frames)).toHaveLength(27);
  });

  test("has room while the store takes events as fast as they come, and again before it has taken all", async () => {
    const store = memoryStore();
    let taken = Promise.withResolvers<void>();
    const slow: LogStore = {
      ...store,
      put: async (...span) => {
        await taken.promise;
        await store.put(...span);
      },
    };
    const takeOne = async (): Promise<void> => {
      const before = store.spans.length;
      taken.resolve();
      taken = Promise.withResolvers();
      await vi.waitFor(() => expect(store.spans.length).toBeGreaterThan(before), patience);
    };
    const log = memoryLog({ store: slow, maxRetainedBytes: 8 << 20 });
    const append = (): unknown => log.appendEvent(record({ text: "x".repeat(200_000) }), 1, false);
    append();
    const persisted = log.persist();
    for (let i = 0; i < 100; i += 1) {
      expect(log.room()).toBeUndefined();
      append();
      if (i % 5 === 4) await takeOne();
    }
    while (log.room() === undefined) append();
    const room = log.room()?.then(() => "room");
    await Promise.all([room, takeOne().then(takeOne).then(takeOne)]);
    expect(await Promise.race([persisted.then(() => "all"), room])).toBe("room");
    taken.resolve();
    taken = { ...taken, promise: Promise.resolve() };
    await persisted;
    expect(store.spans.filter(({ gap }) => gap !== undefined)).toEqual([]);
  });

  test("has room again while the store fails, and waits for the store as soon as all logs have much to store", async () => {
    const store = memoryStore();
    let isCrowded = false;
    const log = memoryLog({ store, maxRetainedBytes: 64 * 1024, isCrowded: () => isCrowded });
    log.appendEvent(record({}), 1, false);
    expect(log.room()).toBeUndefined();
    isCrowded = true;
    await log.room();
    expect([store.spans.length, log.room()]).toEqual([1, undefined]);
    store.fails = true;
    log.appendEvent(record({ text: "x".repeat(60_000) }), 1, false);
    await log.room();
    expect(log.room()).toBeUndefined();
    store.fails = false;
    await log.persist();
    log.appendEvent(record({}), 1, false);
    expect(log.room()).toBeInstanceOf(Promise);
    await log.persist();
  });

  test.each([
    ["small ones between them", 300_000, [12, 300_000, 12, 300_000, 12, 300_000, 12, 300_000, 12, 300_000]],
    ["one that memory cannot keep together with those before it", 7_000_000, [3_500_000]],
  ])("forgets nothing before it is stored: large records with %s", async (_, last, before) => {
    const store = memoryStore();
    const log = memoryLog({ store, maxRetainedBytes: 8 << 20, maxStoredFrameBytes: 8 << 20 });
    for (const size of [...before, ...before, ...before, last]) {
      const isLarge = size > largeRecordBytes;
      await log.room(isLarge ? size : undefined);
      const bytes = record({ text: "x".repeat(size) });
      log.appendEvent(isLarge ? inSpace(bytes) : bytes, 1, false);
    }
    await log.persist();
    expect(store.spans.filter(({ gap }) => gap !== undefined)).toEqual([]);
  });

  test("keeps almost as many bytes in memory as it may, also with small ones between them", () => {
    const log = memoryLog({ maxRetainedBytes: 8 << 20 });
    for (let i = 0; i < 60; i += 1) {
      log.appendEvent(inSpace(record({ text: "x".repeat(300_000) })), 1, true);
      log.appendEvent(record({}), 1, true);
    }
    expect(framesOf(log.read(0, everything)).length).toBeGreaterThan(50);
  });

  test("has room after five seconds without a response of the store, and waits for it again when it responds", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    onTestFinished(() => void vi.useRealTimers());
    const store = memoryStore();
    const silent = Promise.withResolvers<void>();
    const log = memoryLog({
      store: { ...store, put: (...span) => silent.promise.then(() => store.put(...span)) },
      maxRetainedBytes: 64 * 1024,
    });
    const half = record({ text: "x".repeat(40_000) });
    log.appendEvent(half, 1, false);
    let hasRoom = false;
    const room = log.room()?.then(() => {
      hasRoom = true;
    });
    await vi.advanceTimersByTimeAsync(4_999);
    expect(hasRoom).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    await room;
    log.appendEvent(half, 1, false);
    // Also not for the records after it: each would wait as long.
    expect(log.room()).toBeUndefined();
    silent.resolve();
    await log.persist();
    log.appendEvent(half, 1, false);
    expect(log.room()).toBeInstanceOf(Promise);
    await log.persist();
  });

  test("discards a staged record that is not appended", async () => {
    const discarded: number[] = [];
    let number = 0;
    const log = memoryLog({
      stage: async () => ({ file: "", bytes: 0, number: ++number }),
      discard: (staged) => discarded.push(staged.number),
    });
    const [first, second] = [inSpace(record({})), inSpace(record({}))];
    await log.stage(first);
    await log.stage(second);
    expect(discarded).toEqual([1]);
    log.appendEvent(second, 1, false);
    await log.stage(inSpace(record({})));
    log.close();
    await log.stage(inSpace(record({})));
    expect(discarded).toEqual([1, 3]);
  });
});
