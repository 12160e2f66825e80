import { describe, expect, it } from "vitest";
import type { EventStream } from "../../../client/event-stream.ts";
import type { EventGap } from "../../../client/local-errors.ts";
import { WireError } from "../../../protocol/errors.ts";
import type { Gap } from "../../../protocol/event.ts";
import { exampleValue } from "../../../protocol/examples.ts";
import { type NotificationName, type NotificationParams, notifications } from "../../../protocol/notifications.ts";
import { FakeDaemon, noAnswer } from "./fake-daemon.ts";
import { delivery, envelope, sessionId, sessionInfo } from "./fixtures.ts";

/** A daemon whose session is at this cursor; `after` is answered by a replay of one event per seq. */
async function startAt(cursor: number): Promise<FakeDaemon> {
  const daemon = await FakeDaemon.start();
  daemon.answer("session/subscribe", ({ after }, { afterwards }) => {
    afterwards.push(() => {
      for (let seq = (after ?? cursor) + 1; seq <= cursor; seq += 1) daemon.notify("session/event", envelope(seq));
    });
    return { cursor, epoch: "e" };
  });
  daemon.answer("session/unsubscribe", () => ({ wasSubscribed: true }));
  return daemon;
}

function send(daemon: FakeDaemon, ...seqs: readonly number[]): void {
  for (const seq of seqs) daemon.notify("session/event", envelope(seq));
}

function close(daemon: FakeDaemon, seq: number): void {
  daemon.notify("session/updated", { sessionId, seq, at: 1, session: sessionInfo({ state: "closed" }) });
}

/** The next n seqs of a stream. */
async function take(stream: EventStream, n: number): Promise<readonly number[]> {
  const seqs: number[] = [];
  for (let count = 0; count < n; count += 1) {
    const { value } = await stream.next();
    if (value === undefined) throw new Error(`The stream ended after ${seqs}.`);
    seqs.push(value.seq);
  }
  return seqs;
}

/** All seqs to the end of a stream, and its final error. */
async function rest(stream: EventStream): Promise<{ readonly seqs: readonly number[]; readonly error?: unknown }> {
  const seqs: number[] = [];
  try {
    for await (const { seq } of stream) seqs.push(seq);
    return { seqs };
  } catch (error) {
    return { seqs, error };
  }
}

describe("notifications()", () => {
  it("passes on each kind of notification that has a number in the session's log", async () => {
    await using daemon = await startAt(0);
    const client = await daemon.connect();
    const stream = client.session(sessionId).notifications();
    await stream.ready;
    const numbered = Object.entries(notifications).filter(
      ([name, { params }]) =>
        !name.startsWith("daemon/") && "sessionId" in params.properties && "seq" in params.properties,
    );
    expect(numbered.length).toBeGreaterThan(20);
    for (const [at, [name, { params }]] of numbered.entries()) {
      const example = exampleValue(params) as NotificationParams<NotificationName>;
      daemon.notify(name as NotificationName, { ...example, sessionId, seq: at + 1 });
    }
    const names: string[] = [];
    while (names.length < numbered.length) names.push((await stream.next()).value?.name ?? "none");
    expect(names).toEqual(numbered.map(([name]) => name));
    await client.close();
  });
});

describe("events()", () => {
  it("subscribes when it is called and yields the events after the cursor, as pi sent them", async () => {
    await using daemon = await startAt(5);
    await using client = await daemon.connect();
    const stream = client.session(sessionId).events();
    expect(stream.lastSeq).toBeUndefined();
    expect(await stream.ready).toEqual({ cursor: 5, epoch: "e" });
    expect(daemon.seen("session/subscribe")[0]?.params).toEqual({ sessionId });
    const event = {
      type: "message_update",
      assistantMessageEvent: { type: "text_delta", contentIndex: 0, delta: "hi" },
    };
    daemon.notify("session/event", envelope(6, event));
    expect(await stream.next()).toEqual({ done: false, value: envelope(6, event) });
    expect(stream.lastSeq).toBe(6);
  });

  it("misses no event of a call made directly after it", async () => {
    await using daemon = await startAt(5);
    await using client = await daemon.connect();
    const session = client.session(sessionId);
    daemon.answer("session/prompt", () => {
      send(daemon, 6, 7);
      return { promptId: "p", disposition: "started" };
    });
    const stream = session.events();
    await session.prompt("go");
    expect(await take(stream, 2)).toEqual([6, 7]);
  });

  it("replays from `after`, and buffers events before the answer", async () => {
    await using daemon = await startAt(5);
    await using client = await daemon.connect();
    const stream = client.session(sessionId).events({ after: 2 });
    expect(stream.lastSeq).toBe(2);
    expect(await take(stream, 3)).toEqual([3, 4, 5]);
    expect(daemon.seen("session/subscribe")[0]?.params).toEqual({ sessionId, after: 2 });
  });

  it("sends each reader its own events once, in order, over one subscription", async () => {
    await using daemon = await startAt(5);
    await using client = await daemon.connect();
    const session = client.session(sessionId);
    const live = session.events();
    await live.ready;
    send(daemon, 6);
    expect(await take(live, 1)).toEqual([6]);
    const second = session.events();
    expect(await second.ready).toEqual({ cursor: 6, epoch: "e" });
    expect(daemon.seen("session/subscribe")).toHaveLength(1);
    daemon.answer("session/subscribe", ({ after = 0 }, { afterwards }) => {
      afterwards.push(() => {
        for (let seq = after + 1; seq <= 6; seq += 1) send(daemon, seq);
      });
      return { cursor: 6, epoch: "e" };
    });
    const replayed = session.events({ after: 3 });
    expect(await take(replayed, 3)).toEqual([4, 5, 6]);
    send(daemon, 7, 8);
    expect(await take(live, 2)).toEqual([7, 8]);
    expect(await take(second, 2)).toEqual([7, 8]);
    expect(await take(replayed, 2)).toEqual([7, 8]);
  });

  it("requests no later cursor than other readers have", async () => {
    await using daemon = await startAt(5);
    await using client = await daemon.connect();
    const session = client.session(sessionId);
    await session.events().ready;
    await session.events({ after: 9 }).ready;
    expect(daemon.seen("session/subscribe")[1]?.params).toEqual({ sessionId, after: 5, epoch: "e" });
  });

  it("puts its own replay before the tail of another reader's", async () => {
    await using daemon = await startAt(5);
    await using client = await daemon.connect();
    const session = client.session(sessionId);
    daemon.answer("session/subscribe", async ({ after = 0 }, { afterwards }) => {
      if (after === 4) return { cursor: 5, epoch: "e" };
      send(daemon, 5);
      afterwards.push(() => {
        for (let seq = after + 1; seq <= 5; seq += 1) send(daemon, seq);
      });
      return { cursor: 5, epoch: "e" };
    });
    const stream = session.events({ after: 1 });
    expect(await take(stream, 4)).toEqual([2, 3, 4, 5]);
  });

  it("shares a subscription that is in progress", async () => {
    await using daemon = await startAt(5);
    await using client = await daemon.connect();
    const session = client.session(sessionId);
    const [first, second] = [session.events(), session.events()];
    expect([await first.ready, await second.ready]).toEqual([
      { cursor: 5, epoch: "e" },
      { cursor: 5, epoch: "e" },
    ]);
    send(daemon, 6);
    expect([await take(first, 1), await take(second, 1)]).toEqual([[6], [6]]);
    expect(daemon.seen("session/subscribe")).toHaveLength(1);
  });

  it("keeps sessions apart", async () => {
    await using daemon = await startAt(5);
    await using client = await daemon.connect();
    const [mine, other] = [client.session(sessionId).events(), client.session("s-2").events()];
    await Promise.all([mine.ready, other.ready]);
    send(daemon, 6);
    daemon.notify("session/event", { ...envelope(6), sessionId: "s-2" });
    daemon.notify("session/event", { ...envelope(8), sessionId: "s-3" });
    expect(await take(mine, 1)).toEqual([6]);
    expect(await take(other, 1)).toEqual([6]);
  });

  it("yields only events; other notifications of the session only count", async () => {
    await using daemon = await startAt(5);
    await using client = await daemon.connect();
    const stream = client.session(sessionId).events();
    await stream.ready;
    daemon.notify("session/updated", { sessionId, seq: 6, at: 1, session: sessionInfo() });
    daemon.notify("delivery/updated", { sessionId, seq: 7, at: 1, delivery: delivery("d", ["accepted"]) });
    send(daemon, 8);
    expect(await take(stream, 1)).toEqual([8]);
  });
});

describe("an event stream ends", () => {
  it("when the loop is left: the subscription ends with its last reader, and can begin again", async () => {
    await using daemon = await startAt(5);
    await using client = await daemon.connect();
    const session = client.session(sessionId);
    const other = session.events();
    const stream = session.events();
    await Promise.all([stream.ready, other.ready]);
    send(daemon, 6, 7);
    for await (const { seq } of stream) {
      expect(seq).toBe(6);
      break;
    }
    expect(await stream.next()).toEqual({ done: true, value: undefined });
    expect(daemon.seen("session/unsubscribe")).toEqual([]);
    await other[Symbol.asyncDispose]();
    await daemon.called("session/unsubscribe");
    expect(await session.events().ready).toEqual({ cursor: 5, epoch: "e" });
    expect(daemon.seen("session/subscribe")).toHaveLength(2);
  });

  it("before it has begun: pending reads end too", async () => {
    await using daemon = await FakeDaemon.start();
    await using client = await daemon.connect();
    daemon.answer("session/subscribe", () => noAnswer);
    const stream = client.session(sessionId).events();
    const next = stream.next();
    await stream.return();
    expect(await next).toEqual({ done: true, value: undefined });
    await expect(stream.ready).rejects.toThrow("closed before its subscription began");
    await daemon.called("session/unsubscribe");
  });

  it("when the session is closed, after the buffered items", async () => {
    await using daemon = await startAt(5);
    await using client = await daemon.connect();
    const stream = client.session(sessionId).events();
    await stream.ready;
    send(daemon, 6, 7);
    close(daemon, 8);
    expect(await rest(stream)).toEqual({ seqs: [6, 7] });
    expect(daemon.seen("session/unsubscribe")).toEqual([]);
  });

  it("when the session is closed before its reader has begun", async () => {
    await using daemon = await FakeDaemon.start();
    await using client = await daemon.connect();
    daemon.answer("session/subscribe", (_params, { afterwards }) => {
      afterwards.push(() => {
        send(daemon, 6);
        close(daemon, 7);
      });
      return { cursor: 7, epoch: "e" };
    });
    expect(await rest(client.session(sessionId).events({ after: 5 }))).toEqual({ seqs: [6] });
  });

  it("when this client closes the session", async () => {
    await using daemon = await startAt(5);
    await using client = await daemon.connect();
    const session = client.session(sessionId);
    daemon.answer("session/close", () => ({ deliveries: [] }));
    const stream = session.events();
    await stream.ready;
    send(daemon, 6);
    expect(await session.close()).toEqual({ deliveries: [] });
    expect(await rest(stream)).toEqual({ seqs: [6] });
  });

  it("when the client is closed, without an error", async () => {
    await using daemon = await startAt(5);
    const client = await daemon.connect();
    const stream = client.session(sessionId).events();
    await stream.ready;
    send(daemon, 6);
    await take(stream, 1);
    const waiting = rest(stream);
    await client.close();
    expect(await waiting).toEqual({ seqs: [] });
    expect((await rest(client.session(sessionId).events())).error).toMatchObject({ kind: "connection_closed" });
  });

  it("by throwing once when the socket dies, after the buffered items", async () => {
    await using daemon = await startAt(5);
    await using client = await daemon.connect({ reconnect: false });
    const stream = client.session(sessionId).events();
    await stream.ready;
    send(daemon, 6, 7);
    await client.info();
    daemon.breakSockets();
    await client.closed;
    expect(await rest(stream)).toMatchObject({ seqs: [6, 7], error: { kind: "connection_closed", code: 1006 } });
    expect(stream.lastSeq).toBe(7);
    expect(await rest(stream)).toEqual({ seqs: [] });
  });

  it("by throwing to a reader that waits, and to one whose subscription is not answered", async () => {
    await using daemon = await startAt(5);
    await using client = await daemon.connect({ reconnect: false });
    const stream = client.session(sessionId).events();
    await stream.ready;
    daemon.answer("session/subscribe", () => noAnswer);
    const unanswered = client.session("s-2").events();
    const ends = [rest(stream), rest(unanswered)];
    await daemon.called("session/subscribe", 2);
    daemon.breakSockets();
    for (const end of await Promise.all(ends)) expect(end.error).toMatchObject({ kind: "connection_closed" });
    await expect(unanswered.ready).rejects.toMatchObject({ kind: "connection_closed" });
  });

  it("by throwing the refusal of the subscription", async () => {
    await using daemon = await FakeDaemon.start();
    await using client = await daemon.connect();
    daemon.answer("session/subscribe", () => {
      throw new WireError("session_not_found", "No session has this id.");
    });
    const stream = client.session(sessionId).events();
    expect((await rest(stream)).error).toMatchObject({ kind: "session_not_found" });
    await expect(stream.ready).rejects.toBeInstanceOf(WireError);
  });

  it("by throwing its signal's reason immediately, whatever is buffered", async () => {
    await using daemon = await startAt(5);
    await using client = await daemon.connect();
    const controller = new AbortController();
    const session = client.session(sessionId);
    const stream = session.events({ signal: controller.signal });
    await stream.ready;
    send(daemon, 6);
    await client.info();
    controller.abort(new Error("enough"));
    expect(await rest(stream)).toMatchObject({ seqs: [], error: { message: "enough" } });
    await daemon.called("session/unsubscribe");
    expect((await rest(session.events({ signal: controller.signal }))).error).toMatchObject({ message: "enough" });
    expect(daemon.seen("session/subscribe")).toHaveLength(1);
  });

  it("by throwing the position to resume from when it is read too slowly; other readers continue", async () => {
    await using daemon = await startAt(5);
    await using client = await daemon.connect();
    const session = client.session(sessionId);
    const slow = session.events({ maxBufferedEvents: 3 });
    const heavy = session.events({ maxBufferedChars: 200 });
    const other = session.events();
    await Promise.all([slow.ready, heavy.ready, other.ready]);
    send(daemon, 6, 7, 8, 9, 10);
    expect(await take(other, 5)).toEqual([6, 7, 8, 9, 10]);
    expect(await rest(slow)).toMatchObject({ seqs: [6, 7, 8], error: { kind: "buffer_overflow", resumeAfter: 8 } });
    expect(await rest(heavy)).toMatchObject({ seqs: [6], error: { kind: "buffer_overflow", resumeAfter: 6 } });
    daemon.answer("session/subscribe", (_params, { afterwards }) => {
      afterwards.push(() => send(daemon, 9, 10));
      return { cursor: 10, epoch: "e" };
    });
    expect(await take(session.events({ after: 8 }), 2)).toEqual([9, 10]);
  });
});

describe("a gap", () => {
  const gap: Gap = { from: 3, to: 4, reason: "not_retained" };

  async function startWith(answered: Gap, replay: readonly number[]): Promise<FakeDaemon> {
    const daemon = await startAt(5);
    daemon.answer("session/subscribe", (_params, { afterwards }) => {
      afterwards.push(() => {
        daemon.notify("session/gap", { sessionId, ...answered });
        send(daemon, ...replay);
      });
      return { cursor: 5, epoch: "e" };
    });
    return daemon;
  }

  it("is an error before the first event, so that nothing is skipped silently", async () => {
    await using daemon = await startWith(gap, [5]);
    await using client = await daemon.connect();
    const stream = client.session(sessionId).events({ after: 2 });
    expect(await rest(stream)).toMatchObject({ seqs: [], error: { kind: "event_gap", gap } });
    expect(await stream.ready).toEqual({ cursor: 5, epoch: "e" });
  });

  it("is accepted by onGap", async () => {
    await using daemon = await startWith(gap, [5]);
    const failing: unknown[] = [];
    await using client = await daemon.connect({ onDiagnostic: (diagnostic) => failing.push(diagnostic) });
    const gaps: EventGap[] = [];
    const onGap = (seen: EventGap): void => {
      gaps.push(seen);
      throw new Error("not the stream's trouble");
    };
    expect(await take(client.session(sessionId).events({ after: 2, onGap }), 1)).toEqual([5]);
    expect(gaps).toEqual([gap]);
    expect(failing).toMatchObject([{ kind: "listener_failed" }]);
  });

  it("does not concern a reader that has those events, or requested none", async () => {
    await using daemon = await startWith(gap, [5]);
    await using client = await daemon.connect();
    const session = client.session(sessionId);
    const [later, live] = [session.events({ after: 4 }), session.events()];
    expect(await take(later, 1)).toEqual([5]);
    expect(await live.ready).toEqual({ cursor: 5, epoch: "e" });
  });

  it("of a log that restarted its numbers allows smaller numbers", async () => {
    await using daemon = await startWith({ from: 0, to: 900, reason: "log_reset" }, []);
    await using client = await daemon.connect();
    const { promise: told, resolve: onGap } = Promise.withResolvers<EventGap>();
    const stream = client.session(sessionId).events({ after: 900, onGap });
    expect(await told).toMatchObject({ reason: "log_reset" });
    send(daemon, 1);
    expect(await take(stream, 1)).toEqual([1]);
  });

  it("is reported if numbers are missing and the daemon has not explained it", async () => {
    await using daemon = await startAt(5);
    await using client = await daemon.connect();
    const gaps: EventGap[] = [];
    const asking = client.session(sessionId).events({ onGap: (seen) => gaps.push(seen) });
    const plain = client.session(sessionId).events();
    await Promise.all([asking.ready, plain.ready]);
    send(daemon, 6, 9);
    expect(await take(asking, 2)).toEqual([6, 9]);
    expect(gaps).toEqual([{ from: 7, to: 8, reason: "unreported" }]);
    expect(await rest(plain)).toMatchObject({ seqs: [6], error: { kind: "event_gap", gap: { reason: "unreported" } } });
  });

  it("is not reported for merged envelopes, or after an unknown notification", async () => {
    await using daemon = await startAt(5);
    await using client = await daemon.connect();
    const stream = client.session(sessionId).events();
    await stream.ready;
    daemon.notify("session/event", { ...envelope(8), firstSeq: 6 });
    daemon.notify("session/newInTheFuture" as never, { sessionId, seq: 9 } as never);
    send(daemon, 10);
    expect(await take(stream, 2)).toEqual([8, 10]);
  });

  it("is the remainder when merged envelopes begin with an event that was already received", async () => {
    await using daemon = await startAt(5);
    await using client = await daemon.connect();
    const gaps: EventGap[] = [];
    const stream = client.session(sessionId).events({ onGap: (seen) => gaps.push(seen) });
    await stream.ready;
    send(daemon, 6);
    daemon.notify("session/event", { ...envelope(8), firstSeq: 6 });
    send(daemon, 9);
    expect(await take(stream, 2)).toEqual([6, 9]);
    expect(gaps).toEqual([{ from: 7, to: 8, reason: "slow_reader", onlyDeltas: true }]);
  });
});
