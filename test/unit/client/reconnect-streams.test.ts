import { describe, expect, it } from "vitest";
import type { Client, EventGap, EventStream } from "../../../client/index.ts";
import { WireError } from "../../../protocol/errors.ts";
import type { Envelope } from "../../../protocol/event.ts";
import { FakeDaemon, noAnswer } from "./fake-daemon.ts";
import { delivery, envelope, sessionId } from "./fixtures.ts";

const message = { customType: "build", content: "green" };

type Event = Envelope["event"] & Record<string, unknown>;

/** A session's log, which a subscription replays after `after`, if it is still kept. */
class Log {
  readonly daemon: FakeDaemon;
  readonly #events: Envelope[] = [];
  /** The newest seq that is forgotten. */
  forgotten = 0;

  constructor(daemon: FakeDaemon) {
    this.daemon = daemon;
    daemon.answer("session/subscribe", ({ after }, { afterwards }) => {
      const cursor = this.cursor;
      afterwards.push(() => {
        if (after !== undefined && after < this.forgotten) {
          const gap = { from: after + 1, to: this.forgotten, reason: "not_retained" } as const;
          daemon.notify("session/gap", { sessionId, ...gap });
        }
        for (const event of this.#events) {
          if (after !== undefined && event.seq > Math.max(after, this.forgotten)) daemon.notify("session/event", event);
        }
      });
      return { cursor, epoch: "e" };
    });
    daemon.answer("session/unsubscribe", () => ({ wasSubscribed: true }));
  }

  get cursor(): number {
    return this.#events.length;
  }

  /** Adds to the log, and notifies the open connections. */
  write(...events: readonly Event[]): void {
    for (const event of events) {
      const next = envelope(this.cursor + 1, event);
      this.#events.push(next);
      this.daemon.notify("session/event", next);
    }
  }

  ticks(count: number): void {
    for (let i = 0; i < count; i += 1) this.write({ type: "tick" });
  }
}

async function start(): Promise<{ daemon: FakeDaemon; client: Client; log: Log } & AsyncDisposable> {
  const daemon = await FakeDaemon.start();
  const client = await daemon.connect({ reconnect: { firstDelayMs: 1, maxDelayMs: 10 } });
  return {
    daemon,
    client,
    log: new Log(daemon),
    [Symbol.asyncDispose]: async () => {
      await client.close();
      await daemon[Symbol.asyncDispose]();
    },
  };
}

async function take(stream: EventStream, count: number): Promise<readonly number[]> {
  const seqs: number[] = [];
  while (seqs.length < count) {
    const { value } = await stream.next();
    if (value === undefined) throw new Error(`The stream ended after ${seqs}.`);
    seqs.push(value.seq);
  }
  return seqs;
}

describe("a delivery's promises over a lost connection", () => {
  it("survive the loss of the push's answer: it is sent again under its id", async () => {
    await using stage = await start();
    const { daemon, client } = stage;
    daemon.answer("delivery/push", () => noAnswer);
    daemon.answer("delivery/wait", ({ deliveryId }) => delivery(deliveryId, ["accepted", "held", "answered"]));
    const pushed = client.session(sessionId).push(message);
    const { delivered } = pushed;
    await daemon.called("delivery/push");
    daemon.answer("delivery/push", ({ deliveryId = "" }) => delivery(deliveryId, ["accepted", "held"]));
    daemon.breakSockets();
    expect(await pushed.accepted).toMatchObject({ state: "held" });
    expect(await delivered).toMatchObject({ state: "answered" });
    const [first, second] = daemon.seen("delivery/push");
    expect(first?.params["deliveryId"]).toBe(pushed.id);
    expect(second?.params).toEqual(first?.params);
    expect(await pushed.inserted).toMatchObject({ state: "answered" });
  });

  it("ask again for their states, and reject by name when the daemon no longer knows the delivery", async () => {
    await using stage = await start();
    const { daemon, client } = stage;
    daemon.answer("delivery/push", ({ deliveryId = "" }) => delivery(deliveryId, ["accepted"]));
    daemon.answer("delivery/wait", () => noAnswer);
    const known = client.session(sessionId).push({ ...message, deliveryId: "known" });
    const lost = client.session(sessionId).push({ ...message, deliveryId: "lost" });
    // Of these four only one is read: an unhandled rejection of the others would fail the run.
    const promises = [known.delivered, lost.prepared, lost.inserted, lost.answered];
    await daemon.called("delivery/wait", 4);
    daemon.answer("delivery/wait", ({ deliveryId }) => {
      if (deliveryId === "known") return delivery("known", ["accepted", "held", "inserted", "prepared", "delivered"]);
      throw new WireError("delivery_not_found", `There is no delivery "${deliveryId}".`);
    });
    daemon.breakSockets();
    expect(await promises[0]).toMatchObject({ state: "delivered" });
    await expect(promises[1]).rejects.toMatchObject({ kind: "delivery_not_found" });
    expect(daemon.seen("delivery/push")).toHaveLength(2);
  });

  it("still end with their signal, also while there is no connection", async () => {
    await using stage = await start();
    const { daemon, client } = stage;
    daemon.answer("delivery/push", ({ deliveryId = "" }) => delivery(deliveryId, ["accepted"]));
    daemon.answer("delivery/wait", () => noAnswer);
    const controller = new AbortController();
    const { delivered } = client.session(sessionId).push(message, { signal: controller.signal });
    await daemon.called("delivery/wait");
    daemon.refuse = () => ({ status: 503, body: "" });
    const { promise: lost, resolve } = Promise.withResolvers<void>();
    client.onConnection(() => resolve());
    daemon.breakSockets();
    await lost;
    controller.abort(new Error("no longer wanted"));
    await expect(delivered).rejects.toThrow("no longer wanted");
  });

  it("catch up on missed changes: `updates` asks again", async () => {
    await using stage = await start();
    const { daemon, client } = stage;
    daemon.answer("delivery/push", ({ deliveryId = "" }) => delivery(deliveryId, ["accepted"]));
    daemon.answer("delivery/get", ({ deliveryId }) => delivery(deliveryId, ["accepted", "held"]));
    const updates = client.session(sessionId).push(message).updates();
    const states = async (count: number): Promise<readonly string[]> => {
      const found: string[] = [];
      while (found.length < count) found.push((await updates.next()).value?.state ?? "over");
      return found;
    };
    expect(await states(2)).toEqual(["accepted", "held"]);
    daemon.answer("delivery/get", ({ deliveryId }) =>
      delivery(deliveryId, ["accepted", "held", "inserted", "answered"]),
    );
    daemon.breakSockets();
    expect(await states(2)).toEqual(["answered", "over"]);
  });
});

describe("a stream of events over a lost connection", () => {
  it("continues after its last event, each once and in order, whatever cursor each reader has", async () => {
    await using stage = await start();
    const { daemon, client, log } = stage;
    log.ticks(3);
    const session = client.session(sessionId);
    const streams = [session.events(), session.events({ after: 1 })];
    await Promise.all(streams.map(({ ready }) => ready));
    log.ticks(2);
    expect(await take(streams[0] as EventStream, 2)).toEqual([4, 5]);
    daemon.breakSockets();
    log.ticks(2);
    await daemon.called("session/subscribe", 3);
    log.ticks(1);
    expect(await take(streams[0] as EventStream, 3)).toEqual([6, 7, 8]);
    expect(await take(streams[1] as EventStream, 7)).toEqual([2, 3, 4, 5, 6, 7, 8]);
    expect(daemon.seen("session/subscribe").map(({ params }) => params["after"])).toEqual([undefined, 1, 5]);
    log.ticks(1);
    expect(await Promise.all(streams.map((stream) => take(stream, 1)))).toEqual([[9], [9]]);
  });

  it("reports events that cannot be replayed to readers with onGap, and throws to others", async () => {
    await using stage = await start();
    const { daemon, client, log } = stage;
    const gaps: EventGap[] = [];
    const asking = client.session(sessionId).events({ onGap: (gap) => gaps.push(gap) });
    const plain = client.session(sessionId).events();
    const changes = client.session(sessionId).deliveryChanges();
    await Promise.all([asking.ready, plain.ready, changes.ready]);
    log.ticks(1);
    expect(await take(asking, 1)).toEqual([1]);
    daemon.breakSockets();
    log.ticks(4);
    log.forgotten = 3;
    expect(await take(asking, 2)).toEqual([4, 5]);
    const gap = { from: 2, to: 3, reason: "not_retained" };
    expect(gaps).toEqual([gap]);
    expect(await take(plain, 1)).toEqual([1]);
    await expect(plain.next()).rejects.toMatchObject({ kind: "event_gap", gap });
    await expect(changes.next()).rejects.toMatchObject({ kind: "event_gap", gap });
  });

  it("begins on the next connection if its subscription was not answered, and ends if its session is gone", async () => {
    await using stage = await start();
    const { daemon, client } = stage;
    daemon.answer("session/subscribe", () => noAnswer);
    const late = client.session(sessionId).events();
    await daemon.called("session/subscribe");
    new Log(daemon).ticks(2);
    daemon.breakSockets();
    expect(await late.ready).toEqual({ cursor: 2, epoch: "e" });
    daemon.answer("session/subscribe", () => {
      throw new WireError("session_not_found", "No session has this id.");
    });
    daemon.breakSockets();
    await expect(late.next()).rejects.toMatchObject({ kind: "session_not_found" });
    expect(daemon.seen("session/unsubscribe")).toEqual([]);
  });

  it("subscribes again to requests to the provider, at the level of its readers", async () => {
    await using stage = await start();
    const { daemon, client } = stage;
    const requests = client.session(sessionId).providerEvents({ level: "messages" });
    await requests.ready;
    daemon.breakSockets();
    const { params } = await daemon.called("session/subscribe", 2);
    expect(params).toEqual({ sessionId, after: 0, epoch: "e", provider: "messages" });
  });

  it("can be begun and left while there is no connection", async () => {
    await using stage = await start();
    const { daemon, client, log } = stage;
    log.ticks(2);
    daemon.refuse = () => ({ status: 503, body: "" });
    const { promise: lost, resolve } = Promise.withResolvers<void>();
    client.onConnection(() => resolve());
    const before = client.session(sessionId).events();
    await before.ready;
    daemon.breakSockets();
    await lost;
    const during = client.session(sessionId).events({ after: 1 });
    await before.return();
    daemon.refuse = undefined;
    expect(await take(during, 1)).toEqual([2]);
    await during.return();
    await daemon.called("session/unsubscribe");
  });
});

describe("an awaited run over a lost connection", () => {
  it("is followed to its end, though the prompt's answer and its events were lost", async () => {
    await using stage = await start();
    const { daemon, client } = stage;
    daemon.answer("session/prompt", () => noAnswer);
    daemon.answer("prompt/wait", () => noAnswer);
    const answer = client.session(sessionId).promptAndWait("question");
    await daemon.called("session/prompt");
    daemon.answer("session/prompt", () => ({ promptId: "p", disposition: "started" }));
    daemon.breakSockets();
    await daemon.called("prompt/wait");
    daemon.answer("prompt/wait", () => ({
      promptId: "p",
      disposition: "started",
      state: "inserted",
      text: "It is so.",
    }));
    daemon.breakSockets();
    expect(await answer).toBe("It is so.");
    expect(new Set(daemon.seen("session/prompt").map(({ params }) => params["idempotencyKey"])).size).toBe(1);
  });
});
