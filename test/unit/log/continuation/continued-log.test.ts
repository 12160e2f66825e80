import { describe, expect, test } from "vitest";
import type { Gap } from "../../../../protocol/event.ts";
import { SeqNumbers } from "../../../../server/core/seq-numbers.ts";
import type { Frame } from "../../../../server/frames/frame.ts";
import type { Continuation, EventLog } from "../../../../server/log/event-log.ts";
import { Journal } from "../../../../server/log/journal.ts";
import type { Subscriber } from "../../../../server/log/subscription.ts";
import { type MemoryStore, memoryLog, memoryStore, reserveFrom } from "../../../helpers/logs.ts";

const reserved = 1_000;
const event = (type: string, more: object = {}): Buffer => Buffer.from(JSON.stringify({ type, ...more }));
const update = (text: string): Buffer => event("message_update", { text });

interface Output {
  readonly record: Buffer;
  readonly isDelta: boolean;
}

const output = (...records: readonly Buffer[]): Output[] =>
  records.map((record) => ({ record, isDelta: record.includes("_update") }));

/** The log of a daemon that was killed after it had told and stored these: records, or names of its own notifications. */
async function killed(store: MemoryStore, told: readonly (Buffer | string)[]): Promise<EventLog> {
  const log = memoryLog({ store });
  for (const each of told) {
    if (typeof each === "string") log.append("session/updated", { session: each });
    else log.appendEvent(each, 1, each.includes("_update"));
  }
  await log.persist();
  return log;
}

function continued(store: MemoryStore, continuation: Partial<Continuation> = {}): { log: EventLog; why: string[] } {
  const why: string[] = [];
  const log = memoryLog({
    store,
    numbers: new SeqNumbers(reserveFrom(reserved)),
    continuation: {
      seq: 0,
      saidAfter: 0,
      onMismatch: (reason, seq) => why.push(`${reason} ${seq}`),
      ...continuation,
    },
  });
  return { log, why };
}

const framesOf = (log: EventLog): Frame[] =>
  log.read(0, Number.MAX_SAFE_INTEGER).items.flatMap((item) => (item.kind === "frame" ? [item.frame] : []));
const gapsOf = (log: EventLog, after = 0): Gap[] =>
  log.read(after, Number.MAX_SAFE_INTEGER).items.flatMap((item) => (item.kind === "gap" ? [item.gap] : []));
const texts = (frames: readonly Frame[]): string[] => frames.map(({ bytes }) => bytes.toString("utf8"));

function repeat(log: EventLog, records: readonly Output[]): number[] {
  return records.map(({ record, isDelta }) => log.appendEvent(record, 1, isDelta).seq);
}

describe("a continued log", () => {
  const told = [event("message_start"), update("a"), "own", update("b"), event("message_end"), "own"];
  const records = output(event("message_start"), update("a"), update("b"), event("message_end"));

  test("has the same frames as the log of the former daemon, with all deltas again", async () => {
    const store = memoryStore();
    const former = await killed(store, told);
    const { log, why } = continued(store);
    expect(repeat(log, records)).toEqual([1, 2, 4, 5]);
    log.replayed();
    expect({ cursor: log.cursor, lost: log.lost, why }).toEqual({ cursor: 6, lost: undefined, why: [] });
    const isStored = ({ isDelta }: Frame): boolean => !isDelta;
    expect(texts(framesOf(log).filter(isStored))).toEqual(texts(framesOf(former).filter(isStored)));
    expect(framesOf(log).map(({ seq, isDelta }) => [seq, isDelta])).toEqual(
      framesOf(former).map(({ seq, isDelta }) => [seq, isDelta]),
    );
    expect(log.appendEvent(event("next"), 1, false).seq).toBe(7);
    expect(await log.persist()).toBe(true);
    expect(store.spans.map(({ firstSeq, lastSeq }) => [firstSeq, lastSeq])).toEqual([
      [1, 6],
      [7, 7],
    ]);
  });

  test("has the prompts and clients of messages that the former daemon named", async () => {
    const store = memoryStore();
    const former = memoryLog({ store });
    const by = { clientId: "editor-of-ada", name: 'Ä","event":{' };
    const longest = { promptId: "p".repeat(128), by: { clientId: "c".repeat(128), name: "😀".repeat(64) } };
    const origins = [{ promptId: "p-1", by }, {}, { by }, { promptId: "p-2" }, longest];
    for (const [n, origin] of origins.entries()) former.appendEvent(event("message_end", { n }), 1, false, origin);
    former.appendEvent(event("rpcd_entry", { n: 7 }), 1, false, { promptId: "p-3", by });
    await former.persist();
    const { log, why } = continued(store);
    for (const n of origins.keys()) log.appendEvent(event("message_end", { n }), 1, false);
    log.replayed();
    expect(why).toEqual([]);
    expect(texts(framesOf(log))).toEqual(texts(framesOf(former)));
  });

  test("is looked back at from its newest stored frame, also while its output is repeated", async () => {
    const store = memoryStore();
    const former = await killed(store, told);
    const { log } = continued(store);
    for (const { record, isDelta } of [...records, { record: event("queue_update"), isDelta: false }]) {
      const seen: string[] = [];
      log.lookBack((frame) => seen.push(frame.toString("utf8")) === 0);
      const newestFirst = framesOf(former).filter((frame) => !frame.isDelta);
      expect(seen).toEqual(texts(newestFirst.reverse()));
      log.appendEvent(record, 1, isDelta);
    }
    const seen: string[] = [];
    log.lookBack((frame) => seen.push(frame.toString("utf8")) === 1);
    expect(seen).toEqual([expect.stringContaining("queue_update")]);
  });

  test("continues in the middle, after numbers of which only deltas were told since the last stored one", async () => {
    const store = memoryStore();
    await killed(store, [event("message_start")]);
    const { log } = continued(store, { seq: 3 });
    expect(repeat(log, output(update("c"), event("message_end")))).toEqual([4, 5]);
    log.replayed();
    const onlyDeltas = [{ from: 2, to: 3, reason: "not_retained", onlyDeltas: true }];
    expect(gapsOf(log)).toEqual(onlyDeltas);
    expect([log.holdsFrom(2), log.holdsFrom(3), log.holdsFrom(4)]).toEqual([true, true, true]);
    await log.persist();
    expect(gapsOf(log)).toEqual(onlyDeltas);
    expect(store.spans.map(({ firstSeq, lastSeq }) => [firstSeq, lastSeq])).toEqual([
      [1, 1],
      [2, 5],
    ]);
  });

  test.each<[string, readonly Output[], (store: MemoryStore) => void]>([
    ["other bytes", output(event("message_start"), update("a"), event("x")), () => {}],
    ["a record in the place of a delta", output(event("message_start"), event("message_end")), () => {}],
    ["another generation", records, () => {}],
    ["no more output", records.slice(0, 3), () => {}],
    ["a damaged row", records, ({ spans }) => void spans.splice(0, 1, { firstSeq: 1, lastSeq: 1, frames: [] })],
    [
      "a row with damaged frames",
      records,
      ({ spans }) => void spans.splice(0, 1, { firstSeq: 1, lastSeq: 6, frames: [Buffer.from("{}")] }),
    ],
    [
      "a gap in the store",
      records,
      ({ spans }) => void spans.splice(0, 1, { firstSeq: 1, lastSeq: 6, gap: "not_retained", frames: [] }),
    ],
    ["no stored log", records, ({ spans }) => void spans.splice(0)],
  ])("goes on above the reserved numbers after %s, and what is stored stays readable", async (what, output, damage) => {
    const store = memoryStore();
    const seq = what === "no stored log" ? 2 : 0;
    const former = await killed(store, told);
    damage(store);
    const stored = framesOf(memoryLog({ store, numbers: new SeqNumbers(reserveFrom(reserved)) }));
    const { log, why } = continued(store, { seq });
    for (const { record, isDelta } of output) log.appendEvent(record, what === "another generation" ? 2 : 1, isDelta);
    log.replayed();
    expect(why).toEqual([expect.stringMatching(/\. 1000$/)]);
    expect(log.isReplaying).toBe(false);
    const newest = store.newest("s-1");
    const reason = newest === undefined ? "not_retained" : "daemon_restart";
    expect(log.lost).toEqual({ from: (newest ?? 0) + 1, to: reserved, reason });
    expect(log.append("session/updated", {}).seq).toBe(log.cursor);
    expect(log.cursor).toBeGreaterThan(reserved);
    expect(texts(framesOf(log)).slice(0, stored.length)).toEqual(texts(stored));
    expect(former.cursor).toBe(6);
    await log.persist();
    expect(gapsOf(log, newest ?? 0)[0]).toEqual(log.lost);
  });

  test.each([
    ["the stored log is known to have gaps", { isExact: false }],
    ["its place was never reserved", { seq: reserved + 1 }],
  ])("goes on above the reserved numbers where %s", async (_, continuation) => {
    const store = memoryStore();
    await killed(store, told);
    const { log, why } = continued(store, continuation);
    expect(why).toHaveLength(1);
    expect(repeat(log, records.slice(0, 2))).toEqual([reserved + 1, reserved + 2]);
    expect(log.said?.claim("session/updated", { session: "own" })).toBe(true);
  });

  test("goes on above the reserved numbers where the store cannot be read", async () => {
    const store = memoryStore();
    await killed(store, told);
    store.read = () => {
      throw new Error("disk I/O error");
    };
    const { log, why } = continued(store);
    expect(why).toEqual(["The stored log cannot be read. 1000"]);
    expect(repeat(log, records.slice(0, 1))).toEqual([reserved + 1]);
  });

  test("tells an event of the daemon from a record of pi with the same form", async () => {
    const store = memoryStore();
    const diagnostic = { type: "rpcd_diagnostic", kind: "unparsable" };
    const own = { generation: 1, event: diagnostic };
    const former = memoryLog({ store });
    former.append("session/event", own);
    former.appendEvent(event("x"), 1, false);
    former.appendEvent(event("rpcd_diagnostic", { kind: "unparsable" }), 1, false);
    former.append("session/event", own);
    former.append("session/event", own);
    await former.persist();
    const { log, why } = continued(store);
    expect(repeat(log, output(event("x"), event("rpcd_diagnostic", { kind: "unparsable" })))).toEqual([2, 3]);
    log.replayed();
    expect({ cursor: log.cursor, why }).toEqual({ cursor: 5, why: [] });
  });

  test("returns no reserved number and stores nothing while output is repeated", async () => {
    const store = memoryStore();
    await killed(store, told);
    const { log } = continued(store);
    repeat(log, records.slice(0, 2));
    await log.persist();
    await log.rest();
    expect(log.retainedBytes).toBeGreaterThan(0);
    expect(store.spans).toHaveLength(1);
    expect(repeat(log, records.slice(2))).toEqual([4, 5]);
  });
});

describe("the journal of a continued log", () => {
  function journalOf(store: MemoryStore, continuation: Partial<Continuation> = {}): Journal {
    const { log } = continued(store, continuation);
    return new Journal({ sessionId: "s-1", epoch: "e", log });
  }

  function subscriber(): Subscriber & { readonly seqs: number[]; readonly gaps: string[] } {
    const [seqs, gaps]: [number[], string[]] = [[], []];
    const send = (frame: Frame): void => {
      if (frame.firstSeq === undefined) seqs.push(frame.seq);
      else gaps.push(frame.bytes.toString("utf8"));
    };
    return { id: "one", gone: new AbortController().signal, seqs, gaps, send };
  }

  const run = (runId: string): [method: "run/started", params: object & Record<string, unknown>] => [
    "run/started",
    { runId, promptIds: [] },
  ];

  async function withRuns(...runIds: readonly string[]): Promise<MemoryStore> {
    const store = memoryStore();
    const log = memoryLog({ store });
    log.appendEvent(event("agent_start"), 1, false);
    for (const runId of runIds) log.append(...run(runId));
    log.appendEvent(update("a"), 1, true);
    log.appendEvent(event("agent_end"), 1, false);
    await log.persist();
    return store;
  }

  const finish = (journal: Journal): void => {
    journal.record(event("agent_start"), 1, false);
    journal.record(update("a"), 1, true);
    journal.record(event("agent_end"), 1, false);
    journal.replayed();
  };

  test("tells at the end what the former daemon did not tell, in order, and nothing else", async () => {
    const journal = journalOf(await withRuns("r1"));
    journal.say(...run("r2"));
    journal.say(...run("r1"));
    journal.say(...run("r1"));
    expect(journal.unsaid.map(({ params }) => params["runId"])).toEqual(["r2", "r1"]);
    const one = subscriber();
    finish(journal);
    journal.subscribe(one, { after: 1 });
    expect([one.seqs, journal.cursor, journal.unsaid]).toEqual([[2, 3, 4, 5, 6], 6, []]);
    const told = journal.page({ after: 4 }, 1 << 20).items.map((item) => item.kind === "frame" && item.frame.bytes);
    expect(told.map((bytes) => /r\d/.exec(String(bytes))?.[0])).toEqual(["r2", "r1"]);
  });

  test("lets each notification of the former daemon be adopted once, if it was told after the given number", async () => {
    const journal = journalOf(await withRuns("r1", "r2"), { saidAfter: 2 });
    expect(journal.hasSaid(...run("r1"))).toBe(false);
    expect(journal.findSaid("run/started", () => true)).toEqual(run("r2")[1]);
    expect(journal.findSaid("run/ended", () => true)).toBeUndefined();
    journal.say(...run("r2"));
    expect(journal.findSaid("run/started", () => true)).toBeUndefined();
    expect([journal.hasSaid(...run("r2")), journal.unsaid]).toEqual([true, []]);
    finish(journal);
    journal.forgetSaid();
    journal.say(...run("r2"));
    expect([journal.hasSaid(...run("r2")), journal.cursor]).toEqual([false, 6]);
  });

  test("tells what waits as soon as the log and pi's output differ", async () => {
    const journal = journalOf(await withRuns("r1"));
    journal.say(...run("r2"));
    journal.record(event("other"), 1, false);
    expect([journal.isReplaying, journal.cursor, journal.unsaid]).toEqual([false, reserved + 2, []]);
  });

  test("recognises a cursor among numbers that the former daemon could not reserve", async () => {
    const store = memoryStore();
    const refuse = { reserve: () => Promise.reject(new Error("the store fails")), flush: () => false };
    const former = memoryLog({ store, numbers: new SeqNumbers({ reserved: 0, ...refuse }) });
    const { seq } = former.appendEvent(event("agent_start"), 1, false);
    expect(seq).toBeGreaterThan(1e12);
    // These rows are cut before the log is opened.
    const log = memoryLog({ store, continuation: { seq: 0, saidAfter: 0 } });
    const journal = new Journal({ sessionId: "s-1", epoch: "e", log });
    journal.record(event("agent_start"), 1, false);
    journal.replayed();
    expect(journal.cursor).toBe(1);
    expect(journal.page({ after: seq }, 1 << 20).items).toMatchObject([
      { gap: { from: 0, to: seq, reason: "log_reset" } },
      { frame: { seq: 1 } },
    ]);
  });

  test("answers a subscriber after the repetition, with everything after its cursor", async () => {
    const journal = journalOf(await withRuns("r1"));
    const one = subscriber();
    journal.record(event("agent_start"), 1, false);
    // It was told more than is repeated yet.
    journal.subscribe(one, { after: 3, epoch: "e" });
    expect(journal.page({ after: 3 }, 1 << 20)).toMatchObject({ items: [], upTo: 3 });
    journal.record(update("a"), 1, true);
    journal.record(event("agent_end"), 1, false);
    expect(one.seqs).toEqual([]);
    journal.replayed();
    journal.record(event("next"), 1, false);
    expect([one.seqs, one.gaps]).toEqual([[4, 5], []]);
  });

  test("answers a subscriber that subscribes again while output is repeated once, after its newest cursor", async () => {
    const journal = journalOf(await withRuns("r1"));
    const one = subscriber();
    for (const after of [2, 1]) journal.subscribe(one, { after, epoch: "e" });
    finish(journal);
    expect([one.seqs, one.gaps]).toEqual([[2, 3, 4], []]);
  });
});
