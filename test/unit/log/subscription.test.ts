import fc from "fast-check";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { SeqNumbers } from "../../../server/core/seq-numbers.ts";
import { type Frame, unnumberedFrame } from "../../../server/frames/frame.ts";
import type { AnswerPlace } from "../../../server/log/answer-order.ts";
import type { EventLogOptions } from "../../../server/log/event-log.ts";
import { pageOf } from "../../../server/log/event-page.ts";
import { Journal, type SubscribeOptions } from "../../../server/log/journal.ts";
import type { Subscriber } from "../../../server/log/subscription.ts";
import { memoryLog, memoryStore, reserveFrom } from "../../helpers/logs.ts";
import { patience } from "../../helpers/patience.ts";
import type { Unchecked } from "../../helpers/unchecked.ts";

interface RecordingSubscriber extends Subscriber {
  readonly frames: Frame[];
  readonly said: () => { readonly method: string; readonly params: Unchecked }[];
  readonly seqs: () => (number | string)[];
  readonly leave: () => void;
}

function ear(id = "ear"): RecordingSubscriber {
  const frames: Frame[] = [];
  const gone = new AbortController();
  const said = () =>
    frames.map(({ bytes }) => JSON.parse(bytes.toString("utf8")) as { method: string; params: Unchecked });
  return {
    id,
    gone: gone.signal,
    frames,
    said,
    seqs: () => frames.map(({ seq, firstSeq }) => (firstSeq === undefined ? seq : `${firstSeq}-${seq}`)),
    send: (frame) => void frames.push(frame),
    leave: () => gone.abort(),
  };
}

function journalOf(options: Partial<EventLogOptions> = {}): Journal {
  return new Journal({ sessionId: "s-1", epoch: "e-1", log: memoryLog(options) });
}

const delta = (journal: Journal, text: string, contentIndex = 0): void => {
  const assistantMessageEvent = { type: "text_delta", contentIndex, delta: text };
  journal.record(Buffer.from(JSON.stringify({ type: "message_update", usage: {}, assistantMessageEvent })), 1, true);
};
const event = (journal: Journal, type: string, more: object = {}): void =>
  journal.record(Buffer.from(JSON.stringify({ type, ...more })), 1, false);

describe("a subscription", () => {
  test("with answers in order, an event waits for a late answer, at most ten seconds", () => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    const journal = journalOf();
    const one = ear();
    journal.subscribe(one, { inOrder: true });
    const answer = unnumberedFrame(Buffer.from("{}"));
    const placed = () => journal.subscriptions.place(one.id) as AnswerPlace;
    const first = placed();
    event(journal, "agent_start");
    vi.advanceTimersByTime(9_000);
    expect(one.seqs()).toEqual([]);
    first.fill(answer);
    expect(one.seqs()).toEqual([0, 1]);
    const second = placed();
    event(journal, "agent_start");
    vi.advanceTimersByTime(11_000);
    expect(one.seqs()).toEqual([0, 1, 2]);
    second.fill(answer);
    expect(one.seqs()).toEqual([0, 1, 2, 0]);
  });

  test("reads ready events in its subscriber's turns, and gets each number once, whatever arrives meanwhile", async () => {
    const journal = journalOf();
    const text = "x".repeat(50_000);
    for (let i = 0; i < 8; i += 1) event(journal, "x", { text });
    const turns: (() => void)[] = [];
    const waiting: RecordingSubscriber = {
      ...ear(),
      inTurn: <T>(work: () => T) =>
        new Promise<Awaited<T>>((resolve) => turns.push(() => resolve(work() as Awaited<T>))),
    };
    journal.subscribe(waiting, { after: 0 });
    expect(waiting.seqs()).toEqual([]);
    let taken = 0;
    while (waiting.seqs().length < 8) {
      await expect.poll(() => turns.length).toBe(1);
      if (taken === 1) event(journal, "x");
      turns.shift()?.();
      taken += 1;
      expect(waiting.seqs().length).toBeLessThanOrEqual(4 * taken);
    }
    expect(taken).toBeGreaterThan(2);
    for (; waiting.seqs().length < 9; turns.shift()?.()) await expect.poll(() => turns.length).toBe(1);
    event(journal, "x");
    expect(waiting.seqs()).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
  });

  test("gets the events after its cursor and continues live, and one without a cursor gets only later events", () => {
    const journal = journalOf();
    for (let i = 0; i < 3; i += 1) event(journal, "x");
    const [all, live] = [ear("all"), ear("live")];
    expect(journal.subscribe(all, { after: 1 })).toBe(3);
    journal.subscribe(live);
    event(journal, "x");
    expect(all.seqs()).toEqual([2, 3, 4]);
    expect(live.seqs()).toEqual([4]);
    // Once more, from an earlier position.
    journal.subscribe(all, { after: 2 });
    expect(all.seqs()).toEqual([2, 3, 4, 3, 4]);
    journal.unsubscribe("all");
    event(journal, "x");
    expect(all.seqs()).toHaveLength(5);
  });

  test("that throws is ended and reported, and does not affect others", async () => {
    const faults: unknown[] = [];
    const onFault = (error: unknown, id: string) => void faults.push([id, (error as Error).message]);
    const journal = new Journal({ sessionId: "s-1", epoch: "e-1", log: memoryLog(), onFault });
    const throwing = (id: string): Subscriber => ({
      id,
      gone: new AbortController().signal,
      send: () => {
        throw new Error("broken");
      },
    });
    const [first, last] = [ear("first"), ear("last")];
    journal.subscribe(first);
    journal.subscribe(throwing("live"));
    journal.subscribe(throwing("merging"), { coalesceMs: 1 });
    journal.subscribe(last);
    delta(journal, "x");
    expect(faults).toEqual([["live", "broken"]]);
    await vi.waitFor(
      () =>
        expect(faults).toEqual([
          ["live", "broken"],
          ["merging", "broken"],
        ]),
      patience,
    );
    event(journal, "x");
    expect([first.seqs(), last.seqs()]).toEqual([
      [1, 2],
      [1, 2],
    ]);
    expect(["live", "merging"].map((id) => journal.unsubscribe(id))).toEqual([false, false]);
  });

  test("waits for its answer, and misses no event in the meantime", () => {
    const journal = journalOf();
    event(journal, "x");
    const heard = ear();
    let begin = (): void => {};
    expect(journal.subscribe(heard, { after: 0, whenAnswered: (then) => (begin = then) })).toBe(1);
    event(journal, "x");
    expect(heard.seqs()).toEqual([]);
    begin();
    event(journal, "x");
    expect(heard.seqs()).toEqual([1, 2, 3]);
  });

  test("that is restarted before it began begins once", () => {
    const journal = journalOf();
    for (let i = 0; i < 3; i += 1) event(journal, "x");
    const heard = ear();
    const begins: (() => void)[] = [];
    for (const after of [0, 2]) journal.subscribe(heard, { after, whenAnswered: (then) => begins.push(then) });
    for (const begin of begins) begin();
    expect(heard.seqs()).toEqual([3]);
  });

  test.each<[string, SubscribeOptions]>([
    ["a cursor above the head", { after: 9 }],
    ["another epoch", { after: 1, epoch: "another" }],
  ])("is told that %s is of another log, and gets all of this one", (_what, place) => {
    const journal = journalOf();
    for (let i = 0; i < 2; i += 1) event(journal, "x");
    const heard = ear();
    journal.subscribe(heard, place);
    const [first] = heard.said();
    expect(first).toEqual({
      jsonrpc: "2.0",
      method: "session/gap",
      params: { sessionId: "s-1", from: 0, to: place.after, reason: "log_reset" },
    });
    expect(heard.seqs().slice(1)).toEqual([1, 2]);
    expect(journal.continues(place)).toBe(false);
    expect(journal.continues({ after: 1, epoch: "e-1" })).toBe(true);
  });

  test("of certain types is not ended by a record that looks like JSON and is invalid", () => {
    const journal = journalOf();
    const heard = ear();
    journal.subscribe(heard, { types: ["x"] });
    for (const record of ['{"type":"\\x"}', '{ "type":"x","a":01}']) journal.record(Buffer.from(record), 1, false);
    event(journal, "x");
    expect(heard.seqs()).toEqual([3]);
  });

  test("of certain types gets only these, and the notifications that are not events of pi", () => {
    const journal = journalOf();
    const heard = ear();
    journal.subscribe(heard, { types: ["agent_start", 'we"ird'] });
    event(journal, "agent_start");
    event(journal, "agent_end", { event: { type: "agent_start" } });
    delta(journal, "x");
    event(journal, 'we"ird');
    journal.say("session/updated", { session: {} });
    journal.record(Buffer.from('{"text":"\\"event\\":{\\"type\\":\\"agent_start\\"","type":"other"}'), 1, false);
    expect(heard.seqs()).toEqual([1, 4, 5]);
  });

  test("without deltas is not told that deltas are missing", async () => {
    const store = memoryStore();
    const journal = journalOf({ store, numbers: new SeqNumbers(reserveFrom()) });
    event(journal, "message_start");
    for (let i = 0; i < 3; i += 1) delta(journal, "x");
    event(journal, "message_end");
    await journal.rest();
    const [all, few, typed] = [ear("all"), ear("few"), ear("typed")];
    journal.subscribe(all, { after: 0 });
    journal.subscribe(few, { after: 0, deltas: false });
    journal.subscribe(typed, { after: 0, types: ["message_end"] });
    expect(all.seqs()).toEqual([1, "2-4", 5]);
    expect(all.said()[1]?.params).toEqual({
      sessionId: "s-1",
      from: 2,
      to: 4,
      reason: "not_retained",
      onlyDeltas: true,
    });
    expect(few.seqs()).toEqual([1, 5]);
    expect(typed.seqs()).toEqual([5]);
    delta(journal, "x");
    expect([all, few, typed].map((one) => one.frames.length)).toEqual([4, 2, 1]);
  });

  test("that reads slowly gets the log piece by piece, and becomes live at its end", async () => {
    const journal = journalOf({ maxRetainedBytes: 16 << 20 });
    const big = "x".repeat(100_000);
    for (let i = 0; i < 50; i += 1) event(journal, "x", { big });
    const heard = ear();
    const waits: (() => void)[] = [];
    const slow: Subscriber = {
      ...heard,
      drained: () => new Promise((resolve) => waits.push(resolve)),
    };
    journal.subscribe(slow, { after: 0 });
    expect(heard.frames.length).toBeLessThan(15);
    event(journal, "live");
    while (heard.frames.length < 51) {
      waits.shift()?.();
      await Promise.resolve();
    }
    event(journal, "live");
    expect(heard.seqs()).toEqual(Array.from({ length: 52 }, (_, i) => i + 1));
  });

  test("gets the numbers that could not be reserved, at their position", () => {
    const numbers = new SeqNumbers(
      { reserved: 0, reserve: () => Promise.reject(new Error()), flush: () => false },
      () => 500,
    );
    const journal = journalOf({ numbers });
    const heard = ear();
    journal.subscribe(heard);
    event(journal, "x");
    event(journal, "x");
    expect(heard.seqs()).toEqual(["1-499999", 500_000, 500_001]);
    const later = ear("later");
    journal.subscribe(later, { after: 0 });
    expect(later.seqs()).toEqual(["1-499999", 500_000, 500_001]);
  });

  test("that merges gets a block's deltas as one, before all later events", () => {
    vi.useFakeTimers();
    try {
      const journal = journalOf();
      const heard = ear();
      journal.subscribe(heard, { coalesceMs: 50 });
      for (const text of ["a", "b", "c"]) delta(journal, text);
      delta(journal, "z", 1);
      expect(heard.seqs()).toEqual([]);
      event(journal, "message_end");
      expect(heard.seqs()).toEqual(["1-3", 4, 5]);
      delta(journal, "d");
      vi.advanceTimersByTime(50);
      expect(heard.seqs()).toEqual(["1-3", 4, 5, 6]);
      journal.subscribe(heard, { coalesceMs: 0 });
      delta(journal, "e");
      expect(heard.seqs().at(-1)).toBe(7);
      delta(journal, "f");
      heard.leave();
      expect(vi.getTimerCount()).toBe(0);
    } finally {
      vi.useRealTimers();
    }
  });

  test("says whether it can answer dialogs, until it goes", () => {
    const { subscriptions, ...rest } = { subscriptions: undefined, journal: journalOf() };
    const { journal } = rest;
    expect(subscriptions).toBeUndefined();
    const counts: number[] = [];
    journal.subscriptions.onAnswerers(() => counts.push(journal.subscriptions.answerers));
    const [one, other] = [ear("one"), ear("other")];
    journal.subscribe(one, { dialogs: true });
    journal.subscribe(other);
    journal.subscribe(one);
    expect(journal.subscriptions.canAnswer("one")).toBe(true);
    expect(journal.subscriptions.canAnswer("other")).toBe(false);
    journal.subscribe(other, { dialogs: true });
    one.leave();
    journal.subscribe(other, { dialogs: false });
    expect(counts).toEqual([1, 2, 1, 0]);
  });

  const step = fc.oneof(
    {
      weight: 6,
      arbitrary: fc.record({
        kind: fc.constant("delta" as const),
        text: fc.string({ maxLength: 20 }),
        index: fc.nat(1),
      }),
    },
    { weight: 2, arbitrary: fc.constant({ kind: "event" } as const) },
    { weight: 1, arbitrary: fc.constant({ kind: "persist" } as const) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant("again" as const), back: fc.nat(20) }) },
  );
  const wishes = fc.record({ deltas: fc.boolean(), coalesceMs: fc.constantFrom(0, 10_000), typed: fc.boolean() });

  test("accounts for every number once: sent, merged, in a gap, or filtered out", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 60 }), wishes, fc.nat(60), async (steps, wished, from) => {
        const log = memoryLog({ maxRetainedBytes: 1 });
        const journal = new Journal({ sessionId: "s-1", epoch: "e-1", log });
        const types = wished.typed ? { types: ["x", "message_update"] } : {};
        const wanted = { deltas: wished.deltas, coalesceMs: wished.coalesceMs, ...types };
        const heard = ear();
        const isDelta = new Map<number, boolean>();
        journal.subscribe(heard, { after: 0, ...wanted });
        let place = 0;
        for (const each of steps) {
          if (each.kind === "delta") delta(journal, each.text, each.index);
          else if (each.kind === "event") event(journal, "x", { pad: "y".repeat(5_000) });
          else if (each.kind === "persist") await log.persist();
          else {
            // Deltas that wait to be merged are sent at once.
            journal.subscribe(heard);
            heard.frames.length = 0;
            place = Math.max(0, journal.cursor - each.back - from);
            journal.subscribe(heard, { after: place });
          }
          if (each.kind === "delta" || each.kind === "event") isDelta.set(journal.cursor, each.kind === "delta");
        }
        journal.subscribe(heard, { coalesceMs: 0 });
        let next = place + 1;
        const passOver = (upTo: number): void => {
          for (; next < upTo; next += 1) expect(wished.deltas || isDelta.get(next) === false).toBe(false);
        };
        for (const { seq, firstSeq = seq } of heard.frames) {
          passOver(firstSeq);
          expect(firstSeq).toBe(next);
          next = seq + 1;
        }
        passOver(journal.cursor + 1);
      }),
      { numRuns: 300 },
    );
  });
});

describe("a page", () => {
  test("has as many events as requested, and the cursor of the next", async () => {
    const journal = journalOf();
    for (let i = 0; i < 10; i += 1) {
      event(journal, i % 2 === 0 ? "even" : "odd", { pad: "y".repeat(3_000) });
      delta(journal, "x");
    }
    await journal.rest();
    const first = pageOf(journal, { after: 0 }, {}, 4);
    expect(first.events.map(({ method, params }) => [method, params["seq"] ?? params["to"]])).toEqual([
      ["session/event", 1],
      ["session/gap", 2],
      ["session/event", 3],
      ["session/gap", 4],
    ]);
    expect(first.after).toBe(4);
    const odd = pageOf(journal, { after: first.after }, { types: ["odd"] }, 100);
    expect(odd.events.map(({ params }) => params["seq"])).toEqual([7, 11, 15, 19]);
    expect(odd.after).toBe(20);
    expect(pageOf(journal, { after: 20 }, {}, 100)).toEqual({ events: [], after: 20 });
    expect(pageOf(journal, { after: 3, epoch: "other" }, {}, 1)).toMatchObject({
      events: [{ method: "session/gap", params: { reason: "log_reset" } }],
      after: 0,
    });
  });
});
