import { describe, expect, it, test } from "vitest";
import { capabilities } from "../../../protocol/capability.ts";
import { WireError } from "../../../protocol/errors.ts";
import type { Transport } from "../../../server/edge/admission.ts";
import { pageOf } from "../../../server/log/event-page.ts";
import { Journal, type SubscribeOptions } from "../../../server/log/journal.ts";
import { Grant } from "../../../server/rpc/grant.ts";
import type { TokenSource } from "../../../server/rpc/tokens.ts";
import {
  authorization,
  type EdgeTestOptions,
  http,
  isUsable,
  openWebSocket,
  startEdge,
  type TestEdge,
} from "../../helpers/edge.ts";
import { TestEventSource } from "../../helpers/event-source.ts";
import { memoryLog } from "../../helpers/logs.ts";
import { mainGrant } from "../../helpers/tokens.ts";
import { rawSocket } from "./raw-socket.ts";

const path = "/v1/sessions/s-1/events";

interface Fixture extends AsyncDisposable {
  readonly edge: TestEdge;
  readonly journal: Journal;
  /** A record of pi's; returns the bytes that are sent for it. */
  say(record: string, isDelta?: boolean): void;
  open(query?: string, headers?: Readonly<Record<string, string>>, transport?: Transport): Promise<TestEventSource>;
}

/** An edge over one session's log. */
async function startFixture(limits: EdgeTestOptions["limits"] = {}, tokens?: TokenSource): Promise<Fixture> {
  const journal = new Journal({ sessionId: "s-1", epoch: "e:1", log: memoryLog() });
  const edge = await startEdge({
    limits,
    ...(tokens && { tokens }),
    handlers: {
      "session/subscribe": (params, call) => {
        if ((params as { sessionId: string }).sessionId !== "s-1") throw new WireError("session_not_found", "None.");
        if (call.peer === undefined) throw new WireError("invalid_request", "There is no peer.");
        const whenAnswered = call.whenAnswered?.bind(call);
        const cursor = journal.subscribe(call.peer, { ...(params as SubscribeOptions), whenAnswered });
        return { cursor, epoch: journal.epoch };
      },
      "session/events": (params) => {
        const { after, epoch, limit = 100 } = params as { after?: number; epoch?: string; limit?: number };
        return { ...pageOf(journal, { after, epoch }, {}, limit), cursor: journal.cursor, epoch: journal.epoch };
      },
    },
  });
  return {
    edge,
    journal,
    say: (record, isDelta = false) => journal.record(Buffer.from(record), 1, isDelta),
    open: (query = "", headers = {}, transport = "tcp") =>
      TestEventSource.open({
        ...(transport === "unix" ? { socketPath: edge.socketPath } : { url: `http://127.0.0.1:${edge.port}` }),
        path: `${path}${query}`,
        headers: { ...authorization, accept: "text/event-stream", ...headers },
      }),
    [Symbol.asyncDispose]: () => edge[Symbol.asyncDispose](),
  };
}

const said = (text: string): string => JSON.stringify({ type: "x", text });

describe.each<Transport>(["tcp", "unix"])("a session's events over %s", (transport) => {
  it("begin with the result of the subscription, and continue with the exact bytes of a WebSocket's messages", async () => {
    await using room = await startFixture();
    room.say(said("before"));
    using source = await room.open("", {}, transport);
    await source.until(({ events }) => events.length === 1);
    expect(source.response.statusCode).toBe(200);
    expect(source.response.headers).toMatchObject({
      "content-type": "text/event-stream",
      "cache-control": "no-store",
      connection: "close",
    });
    expect(source.retry).toBe(2_000);
    expect(source.events[0]).toMatchObject({ event: "subscribed", id: "e:1:1", json: { cursor: 1, epoch: "e:1" } });
    await using webSocket = await openWebSocket(room.edge, transport);
    const texts = ["plain", "größer \u2028 \u0000 \ud800", "x".repeat(10_000), "y".repeat(600_000)];
    const messages: string[] = [];
    const heard = Promise.withResolvers<void>();
    webSocket.raw.on("message", (data) => {
      // The first one is the answer to the call.
      if (messages.push(String(data)) > texts.length) heard.resolve();
    });
    await webSocket.call("session/subscribe", { sessionId: "s-1" });
    for (const text of texts) room.say(said(text));
    await source.until(({ events }) => events.length === 5);
    await heard.promise;
    expect(source.events.slice(1).map(({ id }) => id)).toEqual(["e:1:2", "e:1:3", "e:1:4", "e:1:5"]);
    expect(source.events.slice(1).map(({ data }) => data)).toEqual(messages.slice(1));
    expect(source.events.slice(1).map(({ json }) => json.params.event.text)).toEqual(texts);
  });

  it("continue after the client's last id, whatever the URL says", async () => {
    await using room = await startFixture();
    for (let i = 0; i < 5; i += 1) room.say(said(String(i)));
    using first = await room.open("?after=2", {}, transport);
    await first.until(({ seqs }) => seqs.length === 3);
    expect(first.events[0]?.id).toBeUndefined();
    expect(first.lastEventId).toBe("e:1:5");
    first.response.destroy();
    for (let i = 5; i < 9; i += 1) room.say(said(String(i)));
    using second = await room.open("?after=2", { "last-event-id": first.lastEventId ?? "" }, transport);
    room.say(said("live"));
    await second.until(({ seqs }) => seqs.length === 5);
    expect([...first.seqs, ...second.seqs]).toEqual([3, 4, 5, 6, 7, 8, 9, 10]);
  });

  it("of another log begin with a gap, and with an id of this log", async () => {
    await using room = await startFixture();
    room.say(said("a"));
    using source = await room.open("", { "last-event-id": "another:1795904422937001" }, transport);
    await source.until(({ seqs }) => seqs.length === 2);
    const [, gap, event] = source.events;
    expect(gap).toMatchObject({ id: "e:1:0", json: { method: "session/gap", params: { reason: "log_reset" } } });
    expect(event).toMatchObject({ id: "e:1:1", json: { method: "session/event" } });
  });

  it("are a page for clients that accept JSON, and events for those that accept anything", async () => {
    await using room = await startFixture();
    room.say(said("a"));
    const ask = (accept: string) => http(room.edge, { transport, path, headers: { ...authorization, accept } });
    const page = await ask("application/json");
    expect(page.body).toMatchObject({ events: [{ method: "session/event", params: { seq: 1 } }], after: 1, cursor: 1 });
    expect((await ask("text/event-stream;q=0.5, application/json")).body).toMatchObject({ cursor: 1 });
    expect((await ask("text/html")).body).toMatchObject({ status: 406, name: "invalid_request" });
    using anything = await room.open("", { accept: "*/*" }, transport);
    expect(anything.response.headers["content-type"]).toBe("text/event-stream");
  });

  it("have a path for the page and one for the stream, which answer in one way for any Accept header", async () => {
    await using room = await startFixture();
    room.say(said("a"));
    const page = await http(room.edge, {
      transport,
      path: `${path}/page`,
      headers: { ...authorization, accept: "*/*" },
    });
    expect(page.headers["content-type"]).toMatch(/^application\/json/);
    expect(page.body).toMatchObject({ after: 1, cursor: 1 });
    const headers = { ...authorization, accept: "application/json" };
    expect((await http(room.edge, { transport, path: `${path}/stream`, headers })).status).toBe(406);
    using stream = await room.open("/stream", { accept: "*/*" }, transport);
    expect(stream.response.headers["content-type"]).toBe("text/event-stream");
  });

  it.each([
    ["an unknown session", "/v1/sessions/other/events", {}, 404, "session_not_found"],
    ["an id of something else", path, { "last-event-id": "77" }, 400, "invalid_params"],
    ["a number that is not exact", `${path}?after=${2 ** 53}`, {}, 400, "invalid_params"],
    ["an unknown name", `${path}?limit=1`, {}, 400, "invalid_params"],
    ["an idempotency key", path, { "idempotency-key": "k" }, 400, "invalid_params"],
  ])("are refused as a problem for %s, and leave nothing", async (_title, where, headers, status, name) => {
    await using room = await startFixture();
    const asked = { ...authorization, accept: "text/event-stream", ...headers };
    const answer = await http(room.edge, { transport, path: where, headers: asked });
    expect(answer.headers["content-type"]).toMatch(/^application\/problem\+json/);
    expect(answer.body).toMatchObject({ status, name });
    expect(room.edge.edge.load.connections).toBe(0);
  });
});

test("HEAD describes the answer, and starts nothing", async () => {
  await using room = await startFixture();
  const answer = await http(room.edge, { method: "HEAD", path, headers: authorization });
  expect(answer).toMatchObject({ status: 200, text: "" });
  expect(answer.headers["content-type"]).toBe("text/event-stream");
  expect(room.edge.edge.load.connections).toBe(0);
});

test("the filters are those of session/subscribe", async () => {
  await using room = await startFixture();
  using source = await room.open("?deltas=false&types=kept,end");
  await source.until(({ events }) => events.length === 1);
  room.say('{"type":"message_update"}', true);
  room.say('{"type":"left_out"}');
  room.say('{"type":"kept"}');
  room.say('{"type":"end"}');
  await source.until(({ seqs }) => seqs.length === 2);
  expect(source.seqs).toEqual([3, 4]);
});

test("a record with a carriage return between its parts is still one event, with the same value", async () => {
  await using room = await startFixture();
  using source = await room.open();
  await source.until(({ events }) => events.length === 1);
  room.say('{"type":"x",\r"a":1,\r\r"b":2}');
  await source.until(({ seqs }) => seqs.length === 1);
  expect(source.events[1]).toMatchObject({ id: "e:1:1", json: { params: { event: { type: "x", a: 1, b: 2 } } } });
});

test("a silent stream sends keep-alives", async () => {
  await using room = await startFixture({ pingIntervalMs: 5 });
  using source = await room.open();
  await source.until(({ comments }) => comments.length > 1);
});

test("a closed session ends its streams, and a client that disconnects is forgotten", async () => {
  await using room = await startFixture();
  using leaving = await room.open();
  using source = await room.open();
  await source.until(({ events }) => events.length === 1);
  leaving.response.destroy();
  room.say(said("last"));
  room.journal.say("session/updated", { session: { state: "closed" } });
  await source.ended;
  expect(source.events.slice(1).map(({ event, json }) => [event, json.params?.seq ?? json.reason])).toEqual([
    ["message", 1],
    ["message", 2],
    ["end", "session_closed"],
  ]);
  await expect.poll(() => room.edge.edge.load.connections).toBe(0);
});

test("the end of the daemon ends streams gracefully, and refuses others", async () => {
  await using room = await startFixture({ closeTimeoutMs: 60_000 });
  using source = await room.open();
  await source.until(({ events }) => events.length === 1);
  room.say(said("last"));
  await room.edge.edge.close();
  await source.ended;
  expect(source.events.at(-1)).toMatchObject({ event: "end", json: { reason: "shutting_down" } });
  expect(source.seqs).toEqual([1]);
});

test("a stream whose subscription is not answered when the daemon ends is refused", async () => {
  const asked = Promise.withResolvers<void>();
  const answer = Promise.withResolvers<unknown>();
  const subscribe = (): Promise<unknown> => {
    asked.resolve();
    return answer.promise;
  };
  await using edge = await startEdge({
    limits: { closeTimeoutMs: 60_000 },
    handlers: { "session/subscribe": subscribe },
  });
  const refused = http(edge, { path, headers: authorization });
  await asked.promise;
  const closed = edge.edge.close();
  answer.resolve({ cursor: 1, epoch: "e" });
  expect(await refused).toMatchObject({ status: 503, body: { name: "shutting_down" } });
  await closed;
});

test("the number of streams is limited", async () => {
  await using room = await startFixture({ maxEventStreams: 1 });
  using source = await room.open();
  const answer = await http(room.edge, { path, headers: authorization });
  expect(answer).toMatchObject({ status: 503, body: { name: "overloaded", retryAfterMs: 1_000 } });
  expect(answer.headers["retry-after"]).toBe("1");
  source.response.destroy();
  await expect.poll(() => room.edge.edge.load.connections).toBe(0);
});

test("the number of a named token's streams is limited", async () => {
  const named = new Grant({ name: "guest", capabilities });
  const tokens = { find: (text: string) => (text === "guest" ? named : mainGrant), onEnded: () => {} };
  await using room = await startFixture({ maxEventStreamsPerToken: 1 }, tokens);
  using first = await room.open("", { authorization: "Bearer guest" });
  const refused = await http(room.edge, { path, headers: { authorization: "Bearer guest" } });
  expect(refused).toMatchObject({ status: 503, body: { name: "overloaded" } });
  expect(refused.text).toContain('1 streams of events is the limit of the token \\"guest\\".');
  using second = await room.open();
  using third = await room.open();
  expect([first, second, third].map(({ response }) => response.statusCode)).toEqual([200, 200, 200]);
});

test("a stream after an unanswered request of the same socket is refused", async () => {
  const { promise, resolve } = Promise.withResolvers<unknown>();
  await using edge = await startEdge({ handlers: { "session/list": () => promise } });
  using socket = rawSocket(edge);
  const head = (target: string): string =>
    `GET ${target} HTTP/1.1\r\nhost: localhost:${edge.port}\r\nauthorization: ${authorization.authorization}\r\n\r\n`;
  socket.socket.write(`${head("/v1/sessions")}${head(path)}`);
  expect(await isAlive(edge)).toBe(true);
  resolve({ sessions: [] });
  const answers = await socket.until((text) => text.includes("invalid_request"));
  expect([...answers.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status)).toEqual(["200", "400"]);
});

test("a reader that does not read gets gaps for deltas, and is disconnected at a limit with a cursor to continue from", async () => {
  const bounds = {
    socketWindowBytes: 64 * 1024,
    mergeDeltasAboveBytes: 100_000,
    dropDeltasAboveBytes: 200_000,
    maxBufferedBytes: 1_000_000,
    slowReaderDeadlineMs: 60_000,
    closeTimeoutMs: 60_000,
  };
  await using room = await startFixture(bounds);
  using source = await room.open();
  await source.until(({ events }) => events.length === 1);
  source.response.pause();
  const delta = JSON.stringify({ type: "tool_execution_update", toolCallId: "t", text: "d".repeat(50_000) });
  // The sizes of the system's buffers are unknown: more than that.
  for (let i = 0; i < 400; i += 1) {
    room.say(delta, true);
    await new Promise((resolve) => setImmediate(resolve));
  }
  room.say(said("mark"));
  source.response.resume();
  await source.until(({ seqs }) => seqs.at(-1) === 401);
  expect(source.events.some(({ json }) => json.params?.reason === "slow_reader")).toBe(true);
  source.response.pause();
  for (let i = 0; i < 400; i += 1) {
    room.say(said("k".repeat(50_000)));
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect(room.edge.logged.some((line) => line.includes("maxBufferedBytes"))).toBe(true);
  source.response.resume();
  await source.ended;
  const after = source.seqs.at(-1);
  expect(source.lastEventId).toBe(`e:1:${after}`);
  expect(source.events.at(-1)).toMatchObject({ event: "end", json: { reason: "slow_reader", epoch: "e:1", after } });
  using again = await room.open("", { "last-event-id": source.lastEventId ?? "" });
  await again.until(({ seqs }) => seqs.at(-1) === 801);
  expect(await isUsable(room.edge)).toBe(true);
});

async function isAlive(edge: TestEdge): Promise<boolean> {
  return (await http(edge)).status === 200;
}
