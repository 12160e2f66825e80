import { expect, it } from "vitest";
import { BufferOverflowError, ConnectionClosedError } from "../../../client/local-errors.ts";
import type { ProviderEvents } from "../../../client/provider-events.ts";
import type { RequestPrepared } from "../../../protocol/provider.ts";
import { FakeDaemon } from "./fake-daemon.ts";
import { envelope, sessionId, sessionInfo } from "./fixtures.ts";

async function start(): Promise<FakeDaemon> {
  const daemon = await FakeDaemon.start();
  daemon.answer("session/subscribe", () => ({ cursor: 5, epoch: "e" }));
  daemon.answer("session/unsubscribe", () => ({ wasSubscribed: true }));
  return daemon;
}

const place = (requestId: string) => ({ sessionId, requestId, after: 5, at: 1 });

function prepare(daemon: FakeDaemon, requestId: string, more: Partial<RequestPrepared> = {}): void {
  const params = { ...place(requestId), attempt: 1, deliveryIds: [], messageCount: 1, ...more };
  daemon.notify("provider/requestPrepared", params);
}

function deliver(daemon: FakeDaemon, requestId: string): void {
  daemon.notify("provider/requestDelivered", { ...place(requestId), evidence: "headers", latencyMs: 1 });
}

const levels = (daemon: FakeDaemon): readonly unknown[] =>
  daemon.seen("session/subscribe").map(({ params }) => params["provider"]);

async function take(events: ProviderEvents, n: number): Promise<readonly string[]> {
  const taken: string[] = [];
  for (let i = 0; i < n; i += 1) {
    const { value } = await events.next();
    taken.push(`${value?.kind} ${value?.requestId}`);
  }
  return taken;
}

it("requests the summary, and yields each request and its end", async () => {
  await using daemon = await start();
  await using client = await daemon.connect();
  const events = client.session(sessionId).providerEvents();
  await events.ready;
  expect(levels(daemon)).toEqual(["summary"]);
  deliver(daemon, "r0");
  prepare(daemon, "r1");
  deliver(daemon, "r1");
  prepare(daemon, "r2");
  daemon.notify("provider/requestFailed", { ...place("r2"), reason: "failed", status: 529, willRetry: true });
  expect(await take(events, 4)).toEqual(["prepared r1", "delivered r1", "prepared r2", "failed r2"]);
});

it("has one subscription at the highest requested level, and each reader gets its own level", async () => {
  await using daemon = await start();
  await using client = await daemon.connect();
  const session = client.session(sessionId);
  const plain = session.events();
  await plain.ready;
  const summary = session.providerEvents();
  await summary.ready;
  const payload = session.providerEvents({ level: "payload" });
  await payload.ready;
  const messages = session.providerEvents({ level: "messages" });
  await messages.ready;
  expect(levels(daemon)).toEqual([undefined, "summary", "payload"]);
  prepare(daemon, "r1", { messages: [1], messagesBytes: 3, payload: { n: 1 }, payloadBytes: 7, truncated: false });
  daemon.notify("session/event", envelope(6));
  expect((await plain.next()).value?.seq).toBe(6);
  const seen = await Promise.all([summary, messages, payload].map(async (events) => (await events.next()).value));
  expect(seen.map((event) => Object.keys(event ?? {}).filter((key) => /messages$|payload$/.test(key)))).toEqual([
    [],
    ["messages"],
    ["messages", "payload"],
  ]);
  await payload.return();
  await daemon.called("session/subscribe", 4);
  await messages.return();
  await summary.return();
  await daemon.called("session/subscribe", 6);
  expect(levels(daemon).slice(3)).toEqual(["messages", "summary", "off"]);
  expect(daemon.seen("session/unsubscribe")).toEqual([]);
});

it("ends with its session, throws when the connection breaks for good, and when it is read too slowly", async () => {
  await using daemon = await start();
  await using client = await daemon.connect({ reconnect: false });
  const session = client.session(sessionId);
  const slow = session.providerEvents({ maxBufferedEvents: 1 });
  const events = session.providerEvents();
  await Promise.all([slow.ready, events.ready]);
  prepare(daemon, "r1");
  deliver(daemon, "r1");
  expect(await take(events, 2)).toEqual(["prepared r1", "delivered r1"]);
  expect(await take(slow, 1)).toEqual(["prepared r1"]);
  await expect(slow.next()).rejects.toThrow(BufferOverflowError);
  daemon.notify("session/updated", { sessionId, seq: 6, at: 1, session: sessionInfo({ state: "closed" }) });
  expect(await events.next()).toEqual({ done: true, value: undefined });
  const other = session.providerEvents();
  await other.ready;
  daemon.breakSockets();
  await expect(other.next()).rejects.toThrow(ConnectionClosedError);
});

it("throws its signal's reason at once", async () => {
  await using daemon = await start();
  await using client = await daemon.connect();
  const controller = new AbortController();
  const events = client.session(sessionId).providerEvents({ signal: controller.signal });
  await events.ready;
  const next = events.next();
  controller.abort(new Error("enough"));
  await expect(next).rejects.toThrow("enough");
  const late = client.session(sessionId).providerEvents({ signal: controller.signal });
  await expect(late.next()).rejects.toThrow("enough");
});

it("skips notifications that are not about requests", async () => {
  await using daemon = await start();
  const odd: string[] = [];
  const client = await daemon.connect({ validateResults: false, onDiagnostic: ({ kind }) => odd.push(kind) });
  await using _closed = client;
  const events = client.session(sessionId).providerEvents();
  await events.ready;
  for (const params of [null, {}, { sessionId }, { sessionId, requestId: 1 }]) {
    daemon.sendRaw(JSON.stringify({ jsonrpc: "2.0", method: "provider/requestPrepared", params }));
  }
  prepare(daemon, "r1");
  expect(await take(events, 1)).toEqual(["prepared r1"]);
  expect(odd).toEqual(Array(4).fill("malformed_notification"));
});
