import type { Socket } from "node:net";
import { Writable } from "node:stream";
import { setImmediate as turn } from "node:timers/promises";
import fc from "fast-check";
import { describe, expect, it, vi } from "vitest";
import { BufferBudget } from "../../../server/edge/buffer-budget.ts";
import { Outbox, type OutboxLimits, type SlowReader } from "../../../server/edge/outbox.ts";
import { type Frame, unnumberedFrame } from "../../../server/frames/frame.ts";
import { Grant } from "../../../server/rpc/grant.ts";
import { Turns } from "../../../server/rpc/turns.ts";
import { patience } from "../../helpers/patience.ts";
import type { Unchecked } from "../../helpers/unchecked.ts";
import { MessageReader } from "./message-reader.ts";

const kib = 1024;
const small: OutboxLimits = {
  socketWindowBytes: 4 * kib,
  mergeDeltasAboveBytes: 8 * kib,
  dropDeltasAboveBytes: 16 * kib,
  maxBufferedBytes: 1024 * kib,
  slowReaderDeadlineMs: 60_000,
};

/** A socket whose other side reads on request. */
class Pipe extends Writable {
  readonly messages = new MessageReader();
  #unread: { readonly bytes: Buffer; read: number }[] = [];
  #taken: (() => void) | undefined;
  #room = 0;

  constructor() {
    super({ highWaterMark: kib });
  }

  /** Reads this many bytes, now or when they arrive. */
  read(bytes: number): void {
    this.#room += bytes;
    this.#pass();
  }

  override _writev(chunks: { chunk: Buffer }[], done: () => void): void {
    this.#unread = chunks.map(({ chunk }) => ({ bytes: chunk, read: 0 }));
    this.#taken = done;
    this.#pass();
  }

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this._writev([{ chunk }], done);
  }

  #pass(): void {
    for (let next = this.#unread[0]; next !== undefined && this.#room > 0; next = this.#unread[0]) {
      const part = next.bytes.subarray(next.read, next.read + this.#room);
      this.messages.push(part);
      this.#room -= part.length;
      next.read += part.length;
      if (next.read === next.bytes.length) this.#unread.shift();
    }
    if (this.#unread.length > 0) return;
    const taken = this.#taken;
    this.#taken = undefined;
    taken?.();
  }
}

function outbox(limits: OutboxLimits = small, budget = new BufferBudget(64 * 1024 * kib), grant?: Grant) {
  const pipe = new Pipe();
  const overflows: SlowReader[] = [];
  const box = new Outbox({
    socket: pipe as unknown as Socket,
    isOpen: () => true,
    limits,
    budget,
    grant,
    lane: new Turns().of(undefined),
    onOverflow: (why) => overflows.push(why),
  });
  return { pipe, box, overflows };
}

function eventFrame(sessionId: string, seq: number, event: { readonly type: string }): Frame {
  const text = JSON.stringify({
    jsonrpc: "2.0",
    method: "session/event",
    params: { sessionId, seq, at: 1, generation: 1, event },
  });
  return { bytes: Buffer.from(text), sessionId, seq, isDelta: event.type === "message_update" };
}

function delta(sessionId: string, seq: number, text: string): Frame {
  const assistantMessageEvent = { type: "text_delta", contentIndex: 0, delta: text };
  return eventFrame(sessionId, seq, { type: "message_update", assistantMessageEvent } as { type: string });
}

const durable = (sessionId: string, seq: number, bytes = 10): Frame =>
  eventFrame(sessionId, seq, { type: "message_end", text: "x".repeat(bytes) } as { type: string });

interface Heard {
  readonly method?: string;
  readonly id?: number;
  readonly params?: Unchecked;
}

const heardBy = (pipe: Pipe): Heard[] => pipe.messages.texts.map((text) => JSON.parse(text) as Heard);

describe("an outbox", () => {
  it("forwards frames and answers in order, as long as they are read", async () => {
    const { pipe, box } = outbox();
    pipe.read(Number.POSITIVE_INFINITY);
    box.send(delta("s", 1, "a"));
    box.answer('{"id":1}');
    box.send(durable("s", 2));
    await turn();
    expect(heardBy(pipe).map(({ id, params }) => id ?? params.seq + 100)).toEqual([101, 1, 102]);
  });

  it("lets answers overtake waiting frames", async () => {
    const { pipe, box } = outbox();
    for (let seq = 1; seq <= 200; seq += 1) box.send(durable("s", seq, 200));
    await turn();
    box.answer('{"id":1}');
    pipe.read(Number.POSITIVE_INFINITY);
    await turn();
    await vi.waitUntil(() => pipe.messages.texts.length === 201, patience);
    const at = heardBy(pipe).findIndex(({ id }) => id === 1);
    expect(at).toBeLessThan(50);
    expect(heardBy(pipe).flatMap(({ params }) => params?.seq ?? [])).toEqual(
      Array.from({ length: 200 }, (_, i) => i + 1),
    );
  });

  it("sends a large message in fragments, with space for control frames between them", async () => {
    const { pipe, box } = outbox();
    const text = "ÿ".repeat(50 * kib);
    box.send(durable("s", 1));
    box.send(eventFrame("s", 2, { type: text }));
    pipe.read(Number.POSITIVE_INFINITY);
    await vi.waitUntil(() => pipe.messages.texts.length === 2, patience);
    expect(heardBy(pipe)[1]?.params.event.type).toBe(text);
    expect(pipe.messages.largestFrame).toBeLessThanOrEqual(4 * kib);
  });

  it("sends large waiting answers in sequence", async () => {
    const { pipe, box } = outbox();
    for (let seq = 1; seq <= 20; seq += 1) box.send(durable("s", seq, kib));
    box.flush();
    const results = ["a", "b", "c"].map((letter) => letter.repeat(10 * kib));
    for (const [id, result] of results.entries()) box.answer(JSON.stringify({ id, result }));
    pipe.read(Number.POSITIVE_INFINITY);
    await vi.waitUntil(() => pipe.messages.texts.length === 23, patience);
    const answers = heardBy(pipe).filter(({ method }) => method === undefined);
    expect(answers).toEqual(results.map((result, id) => ({ id, result })));
  });

  it("first merges deltas, then omits them with a gap, and never omits other frames", async () => {
    const { pipe, box, overflows } = outbox();
    let seq = 0;
    for (let i = 0; i < 500; i += 1) box.send(delta("s", ++seq, "some words "));
    const merged = box.heldBytes;
    for (let i = 0; i < 5_000; i += 1) box.send(delta("s", ++seq, "some words ".repeat(20)));
    box.send(durable("s", ++seq));
    expect(merged).toBeLessThan(9 * kib);
    expect(box.heldBytes).toBeLessThan(17 * kib);
    pipe.read(Number.POSITIVE_INFINITY);
    await vi.waitUntil(() => heardBy(pipe).some(({ params }) => params.seq === seq), patience);
    expect(overflows).toEqual([]);
    const methods = heardBy(pipe).map(({ method }) => method);
    expect(methods.filter((method) => method === "session/gap")).toHaveLength(1);
    expect(methods.at(-1)).toBe("session/event");
  });

  it("disconnects a reader when the frames that must be sent exceed the limit, and reports each session's position", async () => {
    const { pipe, box, overflows } = outbox();
    for (let seq = 1; seq <= 300 && overflows.length === 0; seq += 1) box.send(durable("s", seq, 8 * kib));
    expect(overflows).toMatchObject([{ bound: "maxBufferedBytes" }]);
    const sent = overflows[0]?.sent.get("s") as number;
    pipe.read(Number.POSITIVE_INFINITY);
    await turn();
    expect(heardBy(pipe).at(-1)?.params.seq ?? 0).toBeLessThanOrEqual(sent);
    expect(box.heldBytes).toBe(0);
  });

  it("disconnects a reader that does not read before the deadline, and none without a backlog", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
    try {
      const slow = outbox();
      const idle = outbox();
      const steady = outbox();
      for (let seq = 1; seq <= 100; seq += 1) {
        slow.box.send(durable("s", seq, 200));
        steady.box.send(durable("s", seq, 200));
      }
      for (const seq of [1, 2]) idle.box.send(durable("s", seq, 3 * kib));
      for (const { box } of [slow, idle, steady]) box.flush();
      for (let i = 0; i < 4; i += 1) {
        vi.advanceTimersByTime(20_000);
        steady.pipe.read(5 * kib);
        await turn();
      }
      expect([slow, idle, steady].map(({ overflows }) => overflows.map(({ bound }) => bound))).toEqual([
        ["slowReaderDeadlineMs"],
        [],
        [],
      ]);
      for (const { box } of [idle, steady]) box.close();
    } finally {
      vi.useRealTimers();
    }
  });

  it("disconnects the reader with the largest backlog when all together hold too much; shared memory counts once", () => {
    const budget = new BufferBudget(2_048 * kib);
    const readers = [1, 2, 3].map(() => outbox({ ...small, maxBufferedBytes: 8_192 * kib }, budget));
    const gone = (): (string | undefined)[] => readers.map(({ overflows: [first] }) => first?.bound);
    const alone = (): Frame => unnumberedFrame(Buffer.alloc(64 * kib, 0x20));
    const shared = Array.from({ length: 24 }, alone);
    for (const { box } of readers) for (const frame of shared) box.send(frame);
    expect(gone()).toEqual([undefined, undefined, undefined]);
    for (let i = 0; i < 32; i += 1) readers[1]?.box.send(alone());
    expect(gone()).toEqual([undefined, "maxBufferedBytesAllConnections", undefined]);
  });

  it("disconnects a reader of the token with the largest total, not another token's reader with the largest backlog", () => {
    const budget = new BufferBudget(2_048 * kib);
    const [many, one] = ["many", "one"].map((name) => new Grant({ name, capabilities: ["observe"] }));
    const limits = { ...small, maxBufferedBytes: 8_192 * kib };
    const other = [outbox(limits, budget, one), outbox(limits, budget)];
    const crowd = Array.from({ length: 16 }, () => outbox(limits, budget, many));
    const send = (box: Outbox, count: number): void => {
      for (let i = 0; i < count; i += 1) box.send(unnumberedFrame(Buffer.alloc(64 * kib, 0x20)));
    };
    for (const { box } of other) send(box, 7);
    for (let i = 0; i < 8; i += 1) for (const { box } of crowd) send(box, 1);
    expect(other.flatMap(({ overflows }) => overflows)).toEqual([]);
    expect(crowd.some(({ overflows }) => overflows.length > 0)).toBe(true);
  });

  it("reports when more can be sent", async () => {
    const { pipe, box } = outbox();
    expect(box.drained()).toBeUndefined();
    for (let seq = 1; seq <= 50; seq += 1) box.send(durable("s", seq, kib));
    const drained = box.drained();
    expect(drained).toBeInstanceOf(Promise);
    pipe.read(Number.POSITIVE_INFINITY);
    await drained;
    expect(box.heldBytes).toBeLessThanOrEqual(4 * kib);
    box.close();
    expect(box.drained()).toBeUndefined();
  });

  it("sends everything when it is finished", async () => {
    const { pipe, box } = outbox();
    for (let seq = 1; seq <= 50; seq += 1) box.send(durable("s", seq, 5 * kib));
    box.finish();
    box.send(durable("s", 51));
    pipe.read(Number.POSITIVE_INFINITY);
    await turn();
    expect(heardBy(pipe).map(({ params }) => params.seq)).toEqual(Array.from({ length: 50 }, (_, i) => i + 1));
  });

  it("accounts for every number of each session, however it is read", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(steps, { minLength: 50, maxLength: 400 }), async (played) => {
        const { pipe, box, overflows } = outbox();
        const sent = new Sent(box);
        for (const step of played) {
          if (step.kind === "read") pipe.read(step.bytes);
          else if (step.kind === "turn") await turn();
          else sent.play(step);
        }
        pipe.read(Number.POSITIVE_INFINITY);
        for (let i = 0; box.heldBytes > 0 || i < 3; i += 1) await turn();
        expect(overflows).toEqual([]);
        const answers = heardBy(pipe).flatMap(({ method, id = 0 }) => (method === undefined ? [id] : []));
        expect(answers.toSorted((a, b) => a - b)).toEqual(Array.from({ length: sent.answers }, (_, i) => i + 1));
        sent.check(heardBy(pipe).filter(({ method }) => method !== undefined));
      }),
      { numRuns: 150 },
    );
  });
});

type Step =
  | { readonly kind: "deltas"; readonly session: number; readonly size: number; readonly times: number }
  | { readonly kind: "durable"; readonly session: number; readonly size: number }
  | { readonly kind: "note"; readonly session: number }
  | { readonly kind: "answer"; readonly size: number; readonly pieces: number };

const session = fc.nat({ max: 2 });
const steps = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant("deltas" as const),
      session,
      size: fc.nat({ max: 400 }),
      times: fc.integer({ min: 1, max: 12 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant("durable" as const), session, size: fc.nat({ max: 6 * kib }) }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("note" as const), session }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant("answer" as const),
      size: fc.nat({ max: 12 * kib }),
      pieces: fc.integer({ min: 0, max: 3 }),
    }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("read" as const), bytes: fc.nat({ max: 8 * kib }) }) },
  { weight: 1, arbitrary: fc.constant({ kind: "turn" as const }) },
);

/** The sent frames of three sessions, and the receptions that they allow. */
class Sent {
  answers = 0;
  readonly #box: Outbox;
  /** The text of each number, from 1 on; undefined if it is not a delta. */
  readonly #texts: (string | undefined)[][] = [[], [], []];
  #notes = 0;

  constructor(box: Outbox) {
    this.#box = box;
  }

  play(step: Step): void {
    if (step.kind === "answer") {
      this.answers += 1;
      const text = JSON.stringify({ id: this.answers, result: "x".repeat(step.size) });
      const length = Math.ceil(text.length / step.pieces);
      const pieces = Array.from({ length: step.pieces }, (_, i) =>
        Buffer.from(text.slice(i * length, (i + 1) * length)),
      );
      this.#box.answer(step.pieces === 0 ? text : pieces);
      return;
    }
    const sessionId = `s${step.session}`;
    const texts = this.#of(step.session);
    if (step.kind === "note") {
      this.#notes += 1;
      const params = { sessionId, after: texts.length, n: this.#notes };
      this.#box.send(unnumberedFrame(Buffer.from(JSON.stringify({ method: "note", params }))));
    } else if (step.kind === "durable") {
      texts.push(undefined);
      this.#box.send(durable(sessionId, texts.length, step.size));
    } else {
      for (let i = 0; i < step.times; i += 1) {
        const text = `${step.session}.${texts.length + 1};`.padEnd(step.size, "é");
        texts.push(text);
        this.#box.send(delta(sessionId, texts.length, text));
      }
    }
  }

  check(heard: readonly Heard[]): void {
    const next = [1, 1, 1];
    let notes = 0;
    for (const { method, params } of heard) {
      const at = Number(params.sessionId.slice(1));
      if (method === "note") {
        notes += 1;
        expect([params.n, next[at]]).toEqual([notes, params.after + 1]);
        continue;
      }
      const from = params.firstSeq ?? params.from ?? params.seq;
      const to = params.to ?? params.seq;
      expect(from).toBe(next[at]);
      next[at] = to + 1;
      const covered = this.#of(at).slice(from - 1, to);
      if (method === "session/gap")
        expect([params.reason, covered.includes(undefined)]).toEqual(["slow_reader", false]);
      else if (covered.includes(undefined)) expect(covered).toHaveLength(1);
      else expect(params.event.assistantMessageEvent.delta).toBe(covered.join(""));
    }
    expect(next).toEqual(this.#texts.map(({ length }) => length + 1));
    expect(notes).toBe(this.#notes);
  }

  #of(at: number): (string | undefined)[] {
    return this.#texts[at] as (string | undefined)[];
  }
}
