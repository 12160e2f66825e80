import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { EventGap } from "../../../client/local-errors.ts";
import { type FeedListener, type FeedStart, SessionFeed } from "../../../client/session-feed.ts";
import type { Gap } from "../../../protocol/event.ts";
import { envelope } from "./fixtures.ts";

type Frame =
  | { readonly seq: number; readonly firstSeq?: number }
  | { readonly gap: Gap }
  | { readonly answer: () => void };

/** The answer to a subscription whose connection was lost first. */
class Lost extends Error {}

/** The daemon's end of one connection: a log, one subscription, and frames in transit, in order. */
class Wire {
  readonly frames: Frame[] = [];
  head = 0;
  /** The newest seq that is no longer kept. */
  forgotten = 0;
  merges = false;
  /** Whether the subscription leaves out some numbers, as one without deltas does. */
  readonly isFiltered: boolean;
  #subscribed = false;
  /** Where the subscription begins or continues in a moment, unless it is started again before. */
  #start: number | undefined;
  readonly #unanswered = new Set<(lost: Lost) => void>();

  constructor(isFiltered = false) {
    this.isFiltered = isFiltered;
  }

  readonly feed = new SessionFeed({
    subscribe: (place, _provider, _dialogs, _more, onAnswer) => {
      const wasSubscribed = this.#subscribed;
      this.#subscribed = true;
      const { promise, resolve, reject } = Promise.withResolvers<FeedStart>();
      const cursor = this.head;
      this.#unanswered.add(reject);
      this.frames.push({
        answer: () => {
          const start = { cursor, epoch: "e" };
          onAnswer?.(start);
          resolve(start);
        },
      });
      if (place !== undefined || !wasSubscribed) this.#start = place?.after ?? this.head;
      return promise;
    },
    unsubscribe: () => {
      this.#subscribed = false;
      this.#start = undefined;
    },
    onIdle: () => {},
  });

  /** Starts what was answered. */
  begin(): void {
    if (this.#start !== undefined) this.#replay(this.#start);
    this.#start = undefined;
  }

  /** Forgotten events become a gap, and some of the others are merged. */
  #replay(after: number): void {
    let next = after + 1;
    if (next <= this.forgotten) {
      this.frames.push({ gap: { from: next, to: this.forgotten, reason: "not_retained" } });
      next = this.forgotten + 1;
    }
    while (next <= this.head) {
      if (this.leavesOut(next)) {
        next += 1;
        continue;
      }
      const seq = this.merges && !this.isFiltered ? Math.min(this.head, next + 2) : next;
      this.frames.push(seq === next ? { seq } : { seq, firstSeq: next });
      next = seq + 1;
    }
  }

  leavesOut(seq: number): boolean {
    return this.isFiltered && seq % 4 > 1;
  }

  /** Loses the connection with all frames in transit; `missed` events are written before the next one. */
  break(missed: number): void {
    this.frames.length = 0;
    this.#subscribed = false;
    this.#start = undefined;
    this.feed.suspend();
    for (const reject of this.#unanswered) reject(new Lost());
    this.#unanswered.clear();
    this.head += missed;
  }

  emit(): void {
    this.head += 1;
    if (this.#subscribed && this.#start === undefined && !this.leavesOut(this.head))
      this.frames.push({ seq: this.head });
  }

  deliver(): void {
    this.begin();
    const frame = this.frames.shift();
    if (frame === undefined) return;
    if ("answer" in frame) frame.answer();
    else if ("gap" in frame) this.feed.receiveGap(frame.gap);
    else this.feed.receive({ name: "session/event", params: { ...envelope(frame.seq), ...frame } }, "");
  }

  /** Delivers all frames, also those that their answers lead to. */
  async settle(): Promise<void> {
    do {
      while (this.frames.length > 0) this.deliver();
      await turn();
    } while (this.frames.length > 0);
  }
}

class Reader implements FeedListener {
  /** Received seqs and reported gaps, in order. */
  readonly covered: { readonly from: number; readonly to: number }[] = [];
  readonly after: number | undefined;
  readonly headAtJoin: number;
  readonly #wire: Wire;
  start: FeedStart | undefined;

  constructor(after: number | undefined, wire: Wire) {
    this.after = after;
    this.headAtJoin = wire.head;
    this.#wire = wire;
  }

  begin(start: FeedStart): void {
    expect(this.start).toBeUndefined();
    this.start = start;
  }

  resume(): void {
    expect(this.start).toBeDefined();
  }

  gap({ from, to, reason }: EventGap): void {
    if (reason === "unreported")
      for (let seq = from; seq <= to; seq += 1) expect([seq, this.#wire.leavesOut(seq)]).toEqual([seq, true]);
    this.covered.push({ from, to });
  }

  receive({ params }: { readonly params: { readonly seq: number; readonly firstSeq?: number } }): void {
    this.covered.push({ from: params.firstSeq ?? params.seq, to: params.seq });
  }

  end(): void {
    throw new Error("Nothing ends a reader here.");
  }
}

const step = fc.oneof(
  { weight: 4, arbitrary: fc.constant({ kind: "emit" } as const) },
  { weight: 5, arbitrary: fc.constant({ kind: "deliver" } as const) },
  { weight: 2, arbitrary: fc.constant({ kind: "turn" } as const) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant("join" as const), back: fc.option(fc.nat(12), { nil: undefined }) }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("leave" as const), which: fc.nat() }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("break" as const), missed: fc.nat(5) }) },
  { weight: 2, arbitrary: fc.constant({ kind: "connect" } as const) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("forget" as const), keep: fc.nat(8) }) },
  { weight: 1, arbitrary: fc.constant({ kind: "merge" } as const) },
);

type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

/** Lets all settled promises run. */
function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Readers and connections that come and go while events are written and frames arrive. */
class FeedModel {
  readonly wire: Wire;
  readonly readers: Reader[] = [];
  readonly joined = new Set<Reader>();
  breaks = 0;

  constructor(isFiltered: boolean) {
    this.wire = new Wire(isFiltered);
  }

  async run(steps: readonly Step[]): Promise<void> {
    for (const each of steps) await this.#step(each);
    this.wire.feed.resume();
    await this.wire.settle();
  }

  async #step(step: Step): Promise<void> {
    switch (step.kind) {
      case "emit":
        return this.wire.emit();
      case "deliver":
        return this.wire.deliver();
      case "turn":
        return turn();
      case "break":
        this.breaks += 1;
        return this.wire.break(step.missed);
      case "forget":
        this.wire.forgotten = Math.max(this.wire.forgotten, this.wire.head - step.keep);
        return;
      case "merge":
        this.wire.merges = !this.wire.merges;
        return;
      case "connect":
        return this.wire.feed.resume();
      case "join": {
        const after = step.back === undefined ? undefined : Math.max(0, this.wire.head - step.back);
        const reader = new Reader(after, this.wire);
        this.readers.push(reader);
        this.joined.add(reader);
        return this.wire.feed.join(reader, after);
      }
      case "leave": {
        const leaver = [...this.joined][step.which % Math.max(1, this.joined.size)];
        if (leaver === undefined) return;
        this.joined.delete(leaver);
        this.wire.feed.leave(leaver);
      }
    }
  }
}

describe("SessionFeed", () => {
  it("every reader gets all seqs from its cursor on, as events or gaps, once and in order, however readers and connections come and go", async () => {
    const steps = fc.array(step, { maxLength: 80 });
    const property = fc.asyncProperty(steps, fc.boolean(), async (taken, isFiltered) => {
      const world = new FeedModel(isFiltered);
      await world.run(taken);
      for (const reader of world.readers) {
        const first = reader.after ?? reader.start?.cursor ?? 0;
        let next = first + 1;
        for (const { from, to } of reader.covered) {
          expect(from).toBe(next);
          expect(to).toBeGreaterThanOrEqual(from);
          next = to + 1;
        }
        if (!world.joined.has(reader)) continue;
        while (world.wire.leavesOut(next) && next <= world.wire.head) next += 1;
        expect(next).toBe(world.wire.head + 1);
        // A reader without a cursor misses nothing after it has joined, while its connection is open.
        if (reader.after === undefined && world.breaks === 0)
          expect(reader.start?.cursor ?? 0).toBeLessThanOrEqual(reader.headAtJoin);
      }
    });
    await fc.assert(property, { numRuns: 2_000 });
  });
});

it("a reader from now on misses nothing if another one with a later cursor joins before the answer", async () => {
  const wire = new Wire();
  const fromNow = new Reader(undefined, wire);
  wire.feed.join(fromNow);
  wire.emit();
  const fromCursor = new Reader(1, wire);
  wire.feed.join(fromCursor, 1);
  await wire.settle();
  wire.emit();
  await wire.settle();
  expect(fromNow.start?.cursor).toBe(0);
  expect(fromNow.covered).toEqual([
    { from: 1, to: 1 },
    { from: 2, to: 2 },
  ]);
  expect(fromCursor.covered).toEqual([{ from: 2, to: 2 }]);
});

it("an unknown notification right after the daemon's answer leaves no hole", async () => {
  const wire = new Wire();
  const reader = new Reader(0, wire);
  wire.feed.join(reader);
  for (let i = 0; i < 3; i += 1) wire.emit();
  wire.deliver();
  wire.deliver();
  wire.frames.shift();
  wire.feed.skip(2, 2);
  wire.deliver();
  expect(reader.covered).toEqual([
    { from: 1, to: 1 },
    { from: 3, to: 3 },
  ]);
});

it("an unknown notification that comes before the daemon's answer leaves no hole", async () => {
  const wire = new Wire();
  const first = new Reader(undefined, wire);
  wire.feed.join(first);
  wire.deliver();
  // It asks for more than the first, so it waits for an answer of its own.
  const second = Object.assign(new Reader(undefined, wire), { provider: "summary" as const });
  wire.feed.join(second);
  wire.head += 1;
  wire.feed.skip(1, 1);
  wire.emit();
  while (wire.frames.length > 0) wire.deliver();
  expect([first.covered, second.covered]).toEqual([[{ from: 2, to: 2 }], [{ from: 2, to: 2 }]]);
});

it("a reader whose subscription is refused ends, and begins nothing", async () => {
  const ends: string[] = [];
  const refused = new Error("refused");
  const feed = new SessionFeed({
    subscribe: (_place, _provider, _dialogs, _more, onAnswer) => {
      onAnswer?.(undefined);
      return Promise.reject(refused);
    },
    unsubscribe: () => {},
    onIdle: () => ends.push("idle"),
  });
  const told = Promise.withResolvers<unknown>();
  const unexpected = (): never => {
    throw new Error("Nothing begins here.");
  };
  feed.join({ begin: unexpected, gap: unexpected, receive: unexpected, end: told.resolve });
  expect(await told.promise).toEqual({ kind: "failed", error: refused });
  expect(ends).toEqual(["idle"]);
});

describe("a reader that waits for the answer to another reader's request", () => {
  type Asked = Parameters<ConstructorParameters<typeof SessionFeed>[0]["subscribe"]>;

  /** A feed whose requests are answered or refused by hand. */
  function feedByHand() {
    const asked: { readonly params: Asked; readonly answer: (epoch: string) => void; readonly refuse: () => void }[] =
      [];
    const feed = new SessionFeed({
      subscribe: (...params) => {
        const { promise, resolve, reject } = Promise.withResolvers<FeedStart>();
        const answer = (epoch: string): void => {
          params[4]?.({ cursor: 40, epoch });
          resolve({ cursor: 40, epoch });
        };
        asked.push({ params, answer, refuse: () => reject(new Error("refused")) });
        return promise;
      },
      unsubscribe: () => {},
      onIdle: () => {},
    });
    const told: string[] = [];
    const reader = (name: string): FeedListener => ({
      begin: () => told.push(`${name} begins`),
      resume: () => told.push(`${name} resumes`),
      gap: ({ reason }) => told.push(`${name}: ${reason}`),
      receive: ({ params }) => told.push(`${name}: ${params.seq}`),
      end: ({ kind }) => told.push(`${name}: ${kind}`),
    });
    return { feed, asked, told, reader };
  }

  it("does not fail with that request", async () => {
    const { feed, asked, told, reader } = feedByHand();
    feed.join({ ...reader("answering"), dialogs: true });
    feed.join(reader("from now"));
    feed.join(reader("from 10"), 10);
    expect(asked).toHaveLength(1);
    asked[0]?.refuse();
    await turn();
    expect(told).toEqual(["answering: failed"]);
    // The one from now on asks first, and without dialogs; the other one waits for it again.
    expect(asked.map(({ params: [place, , dialogs] }) => [place, dialogs])).toEqual([
      [undefined, true],
      [undefined, false],
    ]);
    asked[1]?.answer("e");
    asked[2]?.answer("e");
    await turn();
    expect(asked[2]?.params[0]).toEqual({ after: 10, epoch: undefined });
    expect(told.slice(1)).toEqual(["from now begins", "from 10 begins"]);
  });

  it("asks with the log that was known when it joined, so that a daemon with another log says so", async () => {
    const { feed, asked, told, reader } = feedByHand();
    feed.join(reader("first"));
    asked[0]?.answer("one");
    feed.suspend();
    feed.resume();
    feed.join(reader("second"), 30);
    asked[1]?.answer("two");
    expect(asked[2]?.params[0]).toEqual({ after: 30, epoch: "one" });
    asked[2]?.answer("two");
    feed.receiveGap({ from: 0, to: 0, reason: "log_reset" });
    feed.receive({ name: "session/event", params: envelope(1) }, "");
    expect(told.filter((line) => line.startsWith("second"))).toEqual([
      "second begins",
      "second: log_reset",
      "second: 1",
    ]);
  });
});
