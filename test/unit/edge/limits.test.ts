import { once } from "node:events";
import { describe, expect, it, vi } from "vitest";
import type { Transport } from "../../../server/edge/admission.ts";
import type { Peer } from "../../../server/rpc/call.ts";
import {
  deliveryId,
  http,
  isUsable,
  json,
  openWebSocket,
  rawSocket,
  startEdge,
  type TestEdge,
  token,
} from "../../helpers/edge.ts";
import { frame, opcodes, upgraded } from "./frames.ts";

const listing = '{"jsonrpc":"2.0","id":1,"method":"session/list"}';
const sessionId = "01920000-0000-7000-8000-000000000002";
const both = ["tcp", "unix"] as const satisfies readonly Transport[];

const head = (edge: TestEdge, more: string): string =>
  `POST /v1/rpc HTTP/1.1\r\nhost: localhost:${edge.port}\r\nauthorization: Bearer ${token}\r\ncontent-type: application/json\r\n${more}\r\n\r\n`;

describe.each(both)("sizes over %s", (transport) => {
  it("takes a body up to the limit, and answers a larger one with 413", async () => {
    await using edge = await startEdge({ limits: { maxBodyBytes: 200 } });
    const post = (length: number) =>
      http(edge, { transport, method: "POST", path: "/v1/rpc", headers: json, body: listing.padEnd(length) });
    expect((await post(200)).status).toBe(200);
    expect(await post(201)).toMatchObject({ status: 413, body: { name: "too_large", status: 413 } });
    expect(await isUsable(edge)).toBe(true);
  });

  it("answers a body that is too large by its head alone, or when its chunks have become too much", async () => {
    await using edge = await startEdge({ limits: { maxBodyBytes: 200 } });
    using declared = rawSocket(edge, transport);
    declared.socket.write(head(edge, "content-length: 201"));
    expect(await declared.until((text) => text.includes("\r\n\r\n"))).toMatch(/^HTTP\/1\.1 413 /);
    using chunked = rawSocket(edge, transport);
    chunked.socket.write(`${head(edge, "transfer-encoding: chunked")}c9\r\n${" ".repeat(201)}\r\n`);
    expect(await chunked.until((text) => text.includes("\r\n\r\n"))).toMatch(/^HTTP\/1\.1 413 /);
  });

  it("answers a head that is too large with 431", async () => {
    await using edge = await startEdge({ limits: { maxHeaderBytes: 1_000 } });
    for (const line of [`x: ${"a".repeat(2_000)}`, `x: a\r\n${"y: b\r\n".repeat(900)}z: c`]) {
      using socket = rawSocket(edge, transport);
      socket.socket.write(head(edge, line));
      const text = await socket.ended;
      expect(text).toMatch(/^HTTP\/1\.1 431 /);
      expect(text).toContain('"name":"too_large"');
    }
  });
});

describe.each(both)("slow clients over %s", (transport) => {
  const limits = { headersTimeoutMs: 60, requestTimeoutMs: 120 };

  it.each([
    ["say nothing", () => ""],
    ["stop in the head", (edge: TestEdge) => head(edge, "x: y").slice(0, -3)],
    ["stop in the body", (edge: TestEdge) => `${head(edge, "content-length: 50")}{`],
    ["stop within a chunk", (edge: TestEdge) => `${head(edge, "transfer-encoding: chunked")}5\r\n{`],
    ["stop in the head of an upgrade", () => "GET /v1/ws HTTP/1.1\r\nconnection: Upgrade\r\nupgrade: websocket\r\n"],
  ])("get 408 and are ended when they %s", async (_title, text) => {
    await using edge = await startEdge({ limits });
    using socket = rawSocket(edge, transport);
    socket.socket.write(text(edge));
    const answer = await socket.ended;
    expect(answer).toMatch(/^HTTP\/1\.1 408 /);
    expect(answer).toContain("application/problem+json");
    expect(await isUsable(edge)).toBe(true);
  });

  it("that drip a byte at a time are ended all the same", async () => {
    await using edge = await startEdge({ limits });
    using socket = rawSocket(edge, transport);
    const text = head(edge, `x: ${"a".repeat(10_000)}`);
    let at = 0;
    const drip = setInterval(() => {
      socket.socket.write(text[at] ?? "");
      at += 1;
    }, 5);
    expect(await socket.ended).toMatch(/^HTTP\/1\.1 408 /);
    clearInterval(drip);
  });

  it("may wait for their answer for as long as it takes", async () => {
    const { promise, resolve } = Promise.withResolvers<unknown>();
    await using edge = await startEdge({ limits, handlers: { "session/list": () => promise } });
    const asked = http(edge, { transport, method: "POST", path: "/v1/rpc", headers: json, body: listing });
    using slow = rawSocket(edge, transport);
    slow.socket.write("GET");
    await slow.ended;
    using slower = rawSocket(edge, transport);
    slower.socket.write(`${head(edge, "content-length: 50")}{`);
    await slower.ended;
    resolve({ sessions: [] });
    expect((await asked).status).toBe(200);
  });

  it("that do not read their answer are ended", async () => {
    const big = "x".repeat(16 * 1024 * 1024);
    await using edge = await startEdge({ limits, handlers: { "session/list": () => ({ sessions: [big] }) } });
    using socket = rawSocket(edge, transport);
    const { promise: closed, resolve } = Promise.withResolvers<void>();
    socket.socket.pause();
    socket.socket.once("close", () => resolve());
    socket.socket.write(`${head(edge, `content-length: ${listing.length}`)}${listing}`);
    // A paused socket does not hear that it was closed; writing to it does.
    const poke = setInterval(() => socket.socket.write(" "), 20);
    await closed;
    clearInterval(poke);
    expect(await isUsable(edge)).toBe(true);
  });
});

describe("numbers", () => {
  it("refuses a WebSocket over the limit with 503, and takes it when another has gone", async () => {
    await using edge = await startEdge({ limits: { maxConnections: 2 } });
    const first = await openWebSocket(edge, "tcp");
    await using _second = await openWebSocket(edge, "unix");
    expect(edge.edge.connections).toBe(2);
    using third = await upgraded(edge);
    const text = await third.ended;
    expect(text).toMatch(/^HTTP\/1\.1 503 /);
    expect(text).toMatch(/retry-after: 1\r\n/i);
    expect(text).toContain('"name":"overloaded"');
    expect((await http(edge, { method: "POST", path: "/v1/rpc", headers: json, body: listing })).status).toBe(200);
    const { promise: gone, resolve } = Promise.withResolvers<void>();
    first.raw.once("close", () => resolve());
    first.raw.close();
    await gone;
    await using again = await openWebSocket(edge);
    expect((await again.call("session/list")).result).toBeDefined();
  });

  it("closes sockets over the limit as they come", async () => {
    await using edge = await startEdge({ limits: { maxSockets: 1 } });
    await using webSocket = await openWebSocket(edge);
    using over = rawSocket(edge);
    over.socket.write("GET /healthz HTTP/1.1\r\n\r\n");
    expect(await over.ended).toBe("");
    expect((await webSocket.call("session/list")).result).toBeDefined();
    expect((await http(edge, { transport: "unix" })).status).toBe(200);
  });

  it("answers requests of one socket beyond the limit with 503", async () => {
    const { promise, resolve } = Promise.withResolvers<unknown>();
    const handler = vi.fn(() => promise);
    await using edge = await startEdge({ limits: { maxRequestsPerSocket: 2 }, handlers: { "session/list": handler } });
    using socket = rawSocket(edge);
    const one = head(edge, `content-length: ${listing.length}`) + listing;
    socket.socket.write(one.repeat(3));
    await vi.waitUntil(() => handler.mock.calls.length === 2);
    resolve({ sessions: [] });
    const text = await socket.until((heard) => heard.split("HTTP/1.1 ").length === 4 && heard.endsWith("}"));
    expect(text.match(/HTTP\/1\.1 \d+/g)).toEqual(["HTTP/1.1 200", "HTTP/1.1 200", "HTTP/1.1 503"]);
    expect(handler).toHaveBeenCalledTimes(2);
    expect(await isUsable(edge)).toBe(true);
  });
});

describe("a peer that does not answer pings", () => {
  it("is ended, and its calls are cancelled", async () => {
    await using edge = await startEdge({ limits: { pingIntervalMs: 30 } });
    const wait = edge.nextWait();
    using socket = await upgraded(edge);
    const call = { jsonrpc: "2.0", id: 1, method: "delivery/wait", params: { deliveryId } };
    socket.socket.write(frame(opcodes.text, JSON.stringify(call)));
    const { peer, signal } = await wait;
    await aborted(peer?.gone);
    expect(signal.reason).toMatchObject({ kind: "cancelled" });
    expect(edge.edge.connections).toBe(0);
    await socket.ended;
  });

  it("is spared while it says anything else", async () => {
    await using edge = await startEdge({ limits: { pingIntervalMs: 50 } });
    using socket = await upgraded(edge);
    // The rest of each ping's turn: the answer to a call, but no pong.
    const pings = (heard: string): number => heard.split("\x89\x00").length - 1;
    for (let n = 1; n < 6; n += 1) {
      await socket.until((heard) => pings(heard) >= n);
      socket.socket.write(frame(opcodes.text, listing));
    }
    expect(edge.edge.connections).toBe(1);
  });

  it("is told from one that does: that one stays", async () => {
    await using edge = await startEdge({ limits: { pingIntervalMs: 30 } });
    await using webSocket = await openWebSocket(edge);
    for (let n = 0; n < 5; n += 1) await once(webSocket.raw, "ping");
    expect((await webSocket.call("session/list")).result).toBeDefined();
  });
});

describe.each(both)("a reader that does not read, over %s", (transport) => {
  it("is closed with 1013 at the bound, what was queued before comes first, and others notice nothing", async () => {
    const peers: Peer[] = [];
    const subscribe = (_params: unknown, { peer }: { peer?: Peer }) => {
      if (peer !== undefined) peers.push(peer);
      return { cursor: 0 };
    };
    await using edge = await startEdge({
      limits: { maxBufferedBytes: 1024 * 1024, closeTimeoutMs: 10_000 },
      handlers: { "session/subscribe": subscribe },
    });
    await using slow = await openWebSocket(edge, transport);
    await using quick = await openWebSocket(edge, transport);
    for (const webSocket of [slow, quick]) await webSocket.call("session/subscribe", { sessionId });
    slow.raw.pause();
    const bytes = 100_000;
    const rounds = 200;
    let received = 0;
    for (let n = 0; n < rounds; n += 1) {
      const shared = Buffer.from(JSON.stringify({ n, padding: "x".repeat(bytes) }));
      for (const peer of peers) peer.send(shared);
      expect((await quick.next()).n).toBe(n);
    }
    slow.raw.on("message", () => {
      received += 1;
    });
    slow.raw.resume();
    for (let n = 0; n < 3; n += 1) expect((await slow.next()).n).toBe(n);
    expect(await slow.closed).toEqual({ code: 1013, reason: "slow reader" });
    expect(received).toBeLessThan(rounds);
    await aborted(peers[0]?.gone);
    expect(peers[1]?.gone.aborted).toBe(false);
    // Nobody is there any more: nothing happens.
    peers[0]?.send(Buffer.from("{}"));
    expect((await quick.call("session/list")).result).toBeDefined();
  });

  it("is cut off when it does not read the close either", async () => {
    const peers: Peer[] = [];
    const subscribe = (_params: unknown, { peer }: { peer?: Peer }) => {
      if (peer !== undefined) peers.push(peer);
      return { cursor: 0 };
    };
    await using edge = await startEdge({
      limits: { maxBufferedBytes: 1024 * 1024, closeTimeoutMs: 50 },
      handlers: { "session/subscribe": subscribe },
    });
    await using slow = await openWebSocket(edge, transport);
    await slow.call("session/subscribe", { sessionId });
    slow.raw.pause();
    for (let n = 0; n < 30; n += 1) peers[0]?.send(Buffer.alloc(1_000_000, 0x20));
    await aborted(peers[0]?.gone);
    expect(edge.edge.connections).toBe(0);
  });
});

async function aborted(signal: AbortSignal | undefined): Promise<void> {
  if (signal?.aborted === false) await once(signal, "abort");
}
