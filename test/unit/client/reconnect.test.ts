import { rmSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { ConnectOptions } from "../../../client/connect.ts";
import type { Client, ConnectionEvent } from "../../../client/index.ts";
import { WireError } from "../../../protocol/errors.ts";
import { FakeDaemon, noAnswer } from "./fake-daemon.ts";
import { daemonInfo, sessionId, sessionInfo } from "./fixtures.ts";

const quick = { firstDelayMs: 1, maxDelayMs: 10 };

function connectTo(daemon: FakeDaemon, options: ConnectOptions = {}): Promise<Client> {
  return daemon.connect({ reconnect: quick, ...options });
}

/** Resolves at the next event of a kind. */
function next(client: Client, kind: ConnectionEvent["kind"]): Promise<ConnectionEvent> {
  return new Promise((resolve) => {
    const stop = client.onConnection((event) => {
      if (event.kind !== kind) return;
      stop();
      resolve(event);
    });
  });
}

/** Breaks the sockets, and refuses new ones until the returned function is called. */
async function outage(daemon: FakeDaemon, client: Client): Promise<() => void> {
  daemon.refuse = () => ({ status: 503, body: "" });
  const lost = next(client, "lost");
  daemon.breakSockets();
  await lost;
  return () => {
    daemon.refuse = undefined;
  };
}

describe("a client whose connection is lost", () => {
  it("connects again by itself and reports each step", async () => {
    await using daemon = await FakeDaemon.start();
    const client = await connectTo(daemon);
    const events: ConnectionEvent[] = [];
    const stop = client.onConnection((event) => events.push(event));
    let refusals = 2;
    daemon.refuse = () => {
      refusals -= 1;
      return refusals < 0 ? undefined : { status: 503, body: "not yet" };
    };
    const connected = next(client, "connected");
    daemon.breakSockets();
    await connected;
    expect(await client.info()).toEqual(daemonInfo());
    expect(events).toMatchObject([
      { kind: "lost", attempt: 1, reason: { kind: "connection_closed", code: 1006 } },
      { kind: "lost", attempt: 2, reason: { kind: "connection_failed", status: 503 } },
      { kind: "lost", attempt: 3, reason: { kind: "connection_failed" } },
      { kind: "connected", daemon: "same" },
    ]);
    expect(events.every((event) => event.kind !== "lost" || event.nextTryInMs <= quick.maxDelayMs)).toBe(true);
    await client.close();
    expect(events.at(-1)).toMatchObject({ kind: "closed", end: { kind: "closed", code: 1000 } });
    stop();
  });

  it("finds the restarted daemon by daemon.json, which may have another socket and token", async () => {
    await using before = await FakeDaemon.start();
    await using after = await FakeDaemon.start();
    after.token = "token-2";
    after.answer("daemon/info", () => daemonInfo({ startedAt: 2 }));
    await using client = await connectTo(before);
    const connected = next(client, "connected");
    const { url, socketPath, token } = after;
    before.writeFile({ url, socketPath, token });
    before.breakSockets();
    expect(await connected).toEqual({ kind: "connected", daemon: "another" });
    expect((await client.info()).startedAt).toBe(2);
  });

  it("gives up after giveUpAfterMs, with the reason", async () => {
    await using daemon = await FakeDaemon.start();
    const client = await connectTo(daemon, { reconnect: { ...quick, giveUpAfterMs: 30 } });
    daemon.answer("session/get", () => noAnswer);
    const call = client.session(sessionId).get();
    await daemon.called("session/get");
    rmSync(join(daemon.stateDir, "daemon.json"));
    daemon.breakSockets();
    await expect(call).rejects.toMatchObject({
      kind: "reconnect_failed",
      attempts: expect.any(Number),
      cause: { kind: "daemon_not_running", reason: "missing" },
    });
    expect(await client.closed).toMatchObject({ kind: "failed", error: { kind: "reconnect_failed" } });
    await expect(client.info()).rejects.toMatchObject({ kind: "reconnect_failed" });
    expect(await client.close()).toMatchObject({ kind: "failed" });
  });

  it.each([
    [
      "unauthorized",
      (daemon: FakeDaemon) => {
        daemon.token = "rotated";
      },
    ],
    [
      "protocol_mismatch",
      (daemon: FakeDaemon) => daemon.answer("daemon/info", () => daemonInfo({ protocol: 2, version: "2.0.0" })),
    ],
  ])("does not try again after %s", async (kind, change) => {
    await using daemon = await FakeDaemon.start();
    const client = await connectTo(daemon);
    daemon.answer("session/get", () => noAnswer);
    const call = client.session(sessionId).get();
    await daemon.called("session/get");
    change(daemon);
    daemon.breakSockets();
    await expect(call).rejects.toMatchObject({ kind });
    expect(await client.closed).toMatchObject({ kind: "failed", error: { kind } });
    expect(daemon.handshakes).toHaveLength(2);
  });

  it("stops trying at the signal of its options, with its reason, and when it is closed", async () => {
    await using daemon = await FakeDaemon.start();
    const controller = new AbortController();
    const client = await connectTo(daemon, { reconnect: { ...quick, signal: controller.signal } });
    await outage(daemon, client);
    const waiting = expect(client.info()).rejects.toThrow("enough");
    controller.abort(new Error("enough"));
    await waiting;
    expect(await client.closed).toMatchObject({ kind: "failed", error: { message: "enough" } });

    daemon.refuse = undefined;
    const other = await connectTo(daemon, { reconnect: { firstDelayMs: 3_600_000, maxDelayMs: 3_600_000 } });
    await outage(daemon, other);
    const pending = expect(other.info()).rejects.toMatchObject({ kind: "connection_closed", code: 1000 });
    expect(await other.close()).toMatchObject({ kind: "closed", code: 1000 });
    await pending;
  });

  it("continues although a listener throws", async () => {
    await using daemon = await FakeDaemon.start();
    const kinds: string[] = [];
    await using client = await connectTo(daemon, { onDiagnostic: ({ kind }) => kinds.push(kind) });
    client.onConnection(() => {
      throw new Error("a listener that fails");
    });
    const connected = next(client, "connected");
    daemon.breakSockets();
    await connected;
    expect(kinds).toEqual(["listener_failed", "listener_failed"]);
  });
});

describe("a call whose connection is lost", () => {
  it("is repeated if it only reads, and rejects by name if it may have changed something", async () => {
    await using daemon = await FakeDaemon.start();
    await using client = await connectTo(daemon);
    daemon.answer("session/get", () => noAnswer);
    daemon.answer("session/command", () => noAnswer);
    const read = client.session(sessionId).get();
    const command = client.session(sessionId).command({ type: "compact" });
    await daemon.called("session/command");
    daemon.answer("session/get", () => sessionInfo());
    daemon.breakSockets();
    await expect(command).rejects.toMatchObject({
      kind: "connection_closed",
      method: "session/command",
      message: expect.stringContaining("before session/command was answered: the call may have taken effect"),
    });
    expect(await read).toEqual(sessionInfo());
    expect(daemon.seen("session/command")).toHaveLength(1);
  });

  it("is repeated with its key, if it is a prompt, on the daemon that has it", async () => {
    await using daemon = await FakeDaemon.start();
    await using client = await connectTo(daemon);
    daemon.answer("session/prompt", () => noAnswer);
    const prompt = client.session(sessionId).prompt("hello");
    await daemon.called("session/prompt");
    daemon.answer("session/prompt", () => ({ promptId: "p", disposition: "started" }));
    daemon.breakSockets();
    expect(await prompt).toMatchObject({ promptId: "p" });
    const [first, second] = daemon.seen("session/prompt");
    expect(first?.params).toEqual({ sessionId, text: "hello", idempotencyKey: expect.stringMatching(/^[\w-]{36}$/) });
    expect(second?.params).toEqual(first?.params);
  });

  it("is repeated, if it is a prompt, on another daemon too, which finds its key", async () => {
    await using daemon = await FakeDaemon.start();
    await using client = await connectTo(daemon);
    daemon.answer("session/prompt", () => noAnswer);
    const prompt = client.session(sessionId).prompt("hello");
    await daemon.called("session/prompt");
    daemon.answer("daemon/info", () => daemonInfo({ startedAt: 2 }));
    daemon.answer("session/prompt", () => {
      throw new WireError("prompt_lost", "pi ended, and the prompt is not in the transcript.", { promptId: "p" });
    });
    daemon.breakSockets();
    await expect(prompt).rejects.toMatchObject({ kind: "prompt_lost", data: { promptId: "p" } });
    const [first, second] = daemon.seen("session/prompt");
    expect(second?.params).toEqual(first?.params);
  });

  it.each(["cancelled", "shutting_down"] as const)("is repeated when a daemon that ends answers %s", async (name) => {
    await using daemon = await FakeDaemon.start();
    await using client = await connectTo(daemon);
    daemon.answer("session/get", () => {
      throw new WireError(name, "The daemon is about to end.");
    });
    const read = client.session(sessionId).get();
    await daemon.called("session/get");
    daemon.answer("session/get", () => sessionInfo());
    daemon.closeSockets(1001, "the daemon ends");
    expect(await read).toEqual(sessionInfo());
    daemon.answer("session/abort", () => {
      throw new WireError(name, "The daemon is about to end.");
    });
    await expect(client.session(sessionId).abort()).rejects.toMatchObject({ kind: name });
  });

  it("rejects when it is the call that ends the connections", async () => {
    await using daemon = await FakeDaemon.start();
    await using client = await connectTo(daemon, { reconnect: { firstDelayMs: 0 } });
    daemon.answer("session/get", () => {
      daemon.breakSockets();
      return noAnswer;
    });
    await expect(client.session(sessionId).get()).rejects.toMatchObject({ method: "session/get" });
    expect(daemon.seen("session/get")).toHaveLength(10);
    expect(await client.info()).toEqual(daemonInfo());
  });

  it("rejects alone when it exceeds the daemon's size limit", async () => {
    await using daemon = await FakeDaemon.start();
    await using client = await connectTo(daemon);
    daemon.answer("session/get", () => noAnswer);
    daemon.answer("delivery/push", () => noAnswer);
    const small = client.session(sessionId).get();
    const { accepted } = client.session(sessionId).push({ customType: "t", content: "much too long", deliveryId: "d" });
    await daemon.called("delivery/push");
    daemon.answer("session/get", () => sessionInfo());
    daemon.closeSockets(1009, "too long");
    await expect(accepted).rejects.toMatchObject({ kind: "connection_closed", code: 1009, method: "delivery/push" });
    expect(await small).toEqual(sessionInfo());
    expect(daemon.seen("delivery/push")).toHaveLength(1);
  });
});

describe("a call that is made while there is no connection", () => {
  it("waits for it, after earlier calls", async () => {
    await using daemon = await FakeDaemon.start();
    await using client = await connectTo(daemon);
    daemon.answer("session/get", () => noAnswer);
    const gets = [client.session("a").get(), client.session("b").get()];
    await daemon.called("session/get", 2);
    const mend = await outage(daemon, client);
    daemon.answer("session/get", ({ sessionId }) => sessionInfo({ sessionId }));
    daemon.answer("session/abort", () => ({ aborted: false, deliveries: [] }));
    const abort = client.session("c").abort();
    gets.push(client.session("d").get());
    mend();
    expect(await abort).toMatchObject({ aborted: false });
    expect((await Promise.all(gets)).map(({ sessionId }) => sessionId)).toEqual(["a", "b", "d"]);
    expect(daemon.calls.slice(2).map(({ params }) => params["sessionId"])).toEqual(["a", "b", "c", "d"]);
  });

  it("is cancelled by its signal, and is not sent", async () => {
    await using daemon = await FakeDaemon.start();
    await using client = await connectTo(daemon);
    const mend = await outage(daemon, client);
    const controller = new AbortController();
    const abandoned = client.session(sessionId).get({ signal: controller.signal });
    const gone = client.session(sessionId).get({ signal: AbortSignal.abort(new Error("gone before")) });
    controller.abort(new Error("no longer wanted"));
    await expect(abandoned).rejects.toThrow("no longer wanted");
    await expect(gone).rejects.toThrow("gone before");
    mend();
    await client.info();
    expect(daemon.seen("session/get")).toEqual([]);
  });

  it("is refused by name when too many wait, or waiting calls are too long", async () => {
    await using daemon = await FakeDaemon.start();
    const reconnect = { ...quick, maxWaitingCalls: 2, maxWaitingChars: 100 };
    await using client = await connectTo(daemon, { reconnect });
    const mend = await outage(daemon, client);
    const push = { customType: "t", content: "x".repeat(100) };
    const { accepted } = client.session(sessionId).push(push);
    await expect(accepted).rejects.toMatchObject({
      kind: "waiting_overflow",
      message: expect.stringContaining("delivery/push was not sent"),
    });
    const infos = [client.info(), client.info()];
    await expect(client.info()).rejects.toThrow("maxWaitingCalls (2)");
    mend();
    expect(await Promise.all(infos)).toEqual([daemonInfo(), daemonInfo()]);
    const circular: { type: string; self?: unknown } = { type: "x" };
    circular.self = circular;
    await outage(daemon, client);
    await expect(client.session(sessionId).command(circular)).rejects.toThrow("circular");
  });
});
