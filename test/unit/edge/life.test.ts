import { setImmediate as turn } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import type { Transport } from "../../../server/edge/admission.ts";
import { unnumberedFrame } from "../../../server/frames/frame.ts";
import type { Peer } from "../../../server/rpc/call.ts";
import {
  deliveryId,
  http,
  json,
  openWebSocket,
  startEdge,
  type TestEdge,
  TestWebSocket,
  token,
} from "../../helpers/edge.ts";
import { type RawSocket, rawSocket } from "./raw-socket.ts";
import { closeOf, frame, framesOf, opcodes, rawWebSocket } from "./raw-web-socket.ts";

const wait = { jsonrpc: "2.0", method: "delivery/wait", params: { deliveryId } };

describe("the subprotocol", () => {
  it.each([
    [[], ""],
    [["pi-rpcd.v1"], "pi-rpcd.v1"],
    [["other", "pi-rpcd.v1"], "pi-rpcd.v1"],
    [["pi-rpcd.v1", `pi-rpcd.token.${token}`], "pi-rpcd.v1"],
    [[`pi-rpcd.token.${token}`, "pi-rpcd.v1"], "pi-rpcd.v1"],
  ])("of those offered (%j) is %j: never the token's", async (offered, selected) => {
    await using edge = await startEdge();
    const headers = { authorization: `Bearer ${token}` };
    const raw = new WebSocket(`ws://127.0.0.1:${edge.port}/v1/ws`, [...offered], { headers });
    await using webSocket = new TestWebSocket(raw);
    const { promise, resolve } = Promise.withResolvers<void>();
    raw.once("open", resolve);
    await promise;
    expect(raw.protocol).toBe(selected);
    expect(await webSocket.call("session/list")).toHaveProperty("result");
  });
});

describe("a half-open peer", () => {
  it("is disconnected when it does not answer a ping, and others stay", async () => {
    await using edge = await startEdge({ limits: { pingIntervalMs: 200 } });
    await using other = await openWebSocket(edge);
    using dead = await rawWebSocket(edge);
    expect(framesOf(await dead.ended).map(({ opcode }) => opcode)).toEqual([opcodes.ping]);
    expect(await other.call("session/list")).toHaveProperty("result");
    expect(edge.edge.load.connections).toBe(1);
  });

  it("is not assumed while a peer uploads one long message: its pongs wait until that is complete", async () => {
    await using edge = await startEdge({ limits: { pingIntervalMs: 200 } });
    using busy = await rawWebSocket(edge);
    const pings = (text: string): number => framesOf(text).filter(({ opcode }) => opcode === opcodes.ping).length;
    const call = frame(`{"jsonrpc":"2.0","id":7,"method":"session/list"}${" ".repeat(100)}`);
    for (let at = 0; at < 4; at += 1) {
      busy.socket.write(call.subarray(at * 10, at * 10 + 10));
      await busy.until((text) => pings(text) > at);
    }
    busy.socket.write(call.subarray(40));
    expect(await busy.until((text) => text.includes('"id":7'))).toContain('"sessions":[]');
  });

  it("is not assumed while a peer sends anything", async () => {
    await using edge = await startEdge({ limits: { pingIntervalMs: 200 } });
    using busy = await rawWebSocket(edge);
    const pings = (text: string): number => framesOf(text).filter(({ opcode }) => opcode === opcodes.ping).length;
    for (let at = 1; at < 4; at += 1) {
      expect(pings(await busy.until((text) => pings(text) >= at))).toBe(at);
      busy.socket.write(frame('{"jsonrpc":"2.0","method":"session/list"}'));
    }
    expect(edge.edge.load.connections).toBe(1);
  });
});

describe("pings of a peer", () => {
  it("are all answered while it reads, however many arrive at once", async () => {
    await using edge = await startEdge();
    using peer = await rawWebSocket(edge);
    const sent = Array.from({ length: 500 }, (_, at) => String(at));
    for (let at = 0; at < 500; at += 50) {
      peer.socket.write(Buffer.concat(sent.slice(at, at + 50).map((text) => frame(text, { opcode: opcodes.ping }))));
      await peer.until((text) => pongsOf(text).includes(String(at + 49)));
    }
    peer.socket.write(Buffer.concat(sent.map((text) => frame(text, { opcode: opcodes.ping }))));
    const pongs = pongsOf(await peer.until((text) => pongsOf(text).filter((one) => one === "499").length === 2));
    expect(pongs.slice(0, 561)).toEqual([...sent, ...sent.slice(0, 61)]);
    peer.socket.write(frame('{"jsonrpc":"2.0","id":7,"method":"session/list"}'));
    expect(await peer.until((text) => text.includes('"id":7'))).toContain('"sessions":[]');
  });

  it("cost no memory while it does not read: the newest is answered", async () => {
    await using edge = await startEdge();
    using peer = await rawWebSocket(edge, "unix");
    peer.socket.pause();
    const many = Buffer.concat(Array.from({ length: 10_000 }, () => frame("x".repeat(100), { opcode: opcodes.ping })));
    peer.socket.write(many);
    const written = Promise.withResolvers<void>();
    peer.socket.write(frame("last", { opcode: opcodes.ping }), () => written.resolve());
    await written.promise;
    peer.socket.resume();
    const pongs = pongsOf(await peer.until((text) => text.endsWith("last")));
    expect(pongs.at(-1)).toBe("last");
    expect(pongs.length).toBeLessThan(10_000);
  });
});

function pongsOf(text: string): readonly string[] {
  return framesOf(text).flatMap(({ opcode, payload }) => (opcode === opcodes.pong ? [payload.toString()] : []));
}

describe("a slow reader", () => {
  const limits = { maxBufferedBytes: 100_000, closeTimeoutMs: 300 };
  const handlers = {
    "session/command": (_params: unknown, call: { readonly peer?: Peer }) => {
      peers.push(call.peer as Peer);
      return {};
    },
  };
  let peers: Peer[] = [];
  const subscribe = { sessionId: "s", command: { type: "a" } };

  async function connected(edge: TestEdge): Promise<{ slow: TestWebSocket; other: TestWebSocket }> {
    peers = [];
    const slow = await openWebSocket(edge);
    await slow.call("session/command", subscribe);
    const other = await openWebSocket(edge);
    await other.call("session/command", subscribe);
    return { slow, other };
  }

  async function flood(edge: TestEdge): Promise<number> {
    const note = unnumberedFrame(
      Buffer.from(JSON.stringify({ jsonrpc: "2.0", method: "note", params: "x".repeat(50_000) })),
    );
    let sent = 0;
    while (!edge.logged.some((line) => line.includes("does not read"))) {
      for (const peer of peers) peer.send(note);
      sent += 1;
      await turn();
    }
    return sent;
  }

  it("is closed with 1013 when its backlog exceeds the limit; others continue", async () => {
    await using edge = await startEdge({ limits, handlers });
    const { slow, other } = await connected(edge);
    slow.raw.pause();
    const sent = await flood(edge);
    slow.raw.resume();
    expect(await slow.closed).toEqual({ code: 1013, reason: "slow reader: resume after what you have" });
    for (let at = 0; at < sent; at += 1) expect((await other.next()).method).toBe("note");
    expect(await other.call("session/list")).toHaveProperty("result");
    other.raw.terminate();
  });

  it("is disconnected if it does not read the close either", async () => {
    await using edge = await startEdge({ limits, handlers });
    const { slow, other } = await connected(edge);
    slow.raw.pause();
    await flood(edge);
    const gone = peers[0]?.gone as AbortSignal;
    const { promise, resolve } = Promise.withResolvers<void>();
    if (gone.aborted) resolve();
    gone.addEventListener("abort", () => resolve());
    await promise;
    expect(edge.edge.load.connections).toBe(1);
    for (const webSocket of [slow, other]) webSocket.raw.terminate();
  });
});

describe.each<Transport>(["tcp", "unix"])("calls under way over %s", (transport) => {
  it("are cancelled by $/cancelRequest, and answered as cancelled", async () => {
    await using edge = await startEdge();
    await using webSocket = await openWebSocket(edge, transport);
    const begun = edge.nextWait();
    webSocket.send({ ...wait, id: "a" });
    await begun;
    webSocket.send({ jsonrpc: "2.0", method: "$/cancelRequest", params: { id: "b" } });
    webSocket.send({ jsonrpc: "2.0", method: "$/cancelRequest", params: { id: "a" } });
    expect(await webSocket.next()).toMatchObject({ id: "a", error: { code: -32034, data: { name: "cancelled" } } });
  });

  it("are not cancelled by another connection, nor by an id of another type", async () => {
    await using edge = await startEdge();
    await using webSocket = await openWebSocket(edge, transport);
    await using other = await openWebSocket(edge, transport);
    const begun = edge.nextWait();
    webSocket.send({ ...wait, id: 1 });
    const { signal } = await begun;
    other.send({ jsonrpc: "2.0", method: "$/cancelRequest", params: { id: 1 } });
    expect(await other.call("session/list")).toHaveProperty("result");
    webSocket.send({ jsonrpc: "2.0", method: "$/cancelRequest", params: { id: "1" } });
    webSocket.send({ jsonrpc: "2.0", method: "$/cancelRequest", params: [1] });
    webSocket.send({ jsonrpc: "2.0", method: "$/cancelRequest" });
    expect(await webSocket.call("session/list", {}, 2)).toMatchObject({ id: 2 });
    expect(signal.aborted).toBe(false);
  });

  it("are cancelled when their connection ends", async () => {
    await using edge = await startEdge();
    const webSocket = await openWebSocket(edge, transport);
    const begun = edge.nextWait();
    webSocket.send({ ...wait, id: 1 });
    const { signal, peer } = await begun;
    webSocket.raw.terminate();
    await aborted(signal);
    expect(signal.reason).toMatchObject({ kind: "cancelled" });
    expect(peer?.gone.aborted).toBe(true);
    expect(edge.edge.load.connections).toBe(0);
    peer?.send(unnumberedFrame(Buffer.from("{}")));
  });

  it("are cancelled when their HTTP request's socket ends", async () => {
    await using edge = await startEdge();
    using socket = rawSocket(edge, transport);
    const body = JSON.stringify({ ...wait, id: 1 });
    const head = Object.entries(json).map(([name, value]) => `${name}: ${value}`);
    const begun = edge.nextWait();
    socket.socket.write(
      `POST /v1/rpc HTTP/1.1\r\nhost: localhost:${edge.port}\r\n${head.join("\r\n")}\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    );
    const { signal, peer } = await begun;
    expect(peer).toBeUndefined();
    socket.socket.destroy();
    await aborted(signal);
  });

  it("are bounded: one more is overloaded, and capacity is free again when one ends", async () => {
    await using edge = await startEdge({ dispatcherLimits: { maxCallsInFlight: 2 } });
    await using webSocket = await openWebSocket(edge, transport);
    webSocket.send([{ ...wait, id: 1 }, { ...wait, id: 1 }, { ...wait, id: 3 }, wait]);
    expect(await webSocket.call("session/list", {}, 4)).toMatchObject({
      id: 4,
      error: { code: -32040, data: { name: "overloaded", retryable: true, retryAfterMs: expect.any(Number) } },
    });
    webSocket.send({ jsonrpc: "2.0", id: 5, method: "$/cancelRequest", params: { id: 1 } });
    expect(await webSocket.next()).toEqual({ jsonrpc: "2.0", id: 5, result: null });
    expect(await webSocket.call("session/list", {}, 6)).toMatchObject({ id: 6, result: {} });
  });
});

describe("the texts of calls in progress", () => {
  it("are bounded in bytes: more is overloaded, and waiting calls are not affected", async () => {
    await using edge = await startEdge({ dispatcherLimits: { maxBytesInFlight: 500 } });
    await using webSocket = await openWebSocket(edge);
    const begun = edge.nextWait();
    webSocket.send({ ...wait, id: 1 });
    const { signal } = await begun;
    const long = { sessionId: "s", command: { type: "a", text: "x".repeat(500) } };
    expect(await webSocket.call("session/command", long, 2)).toMatchObject({
      id: 2,
      error: { data: { name: "overloaded", retryAfterMs: expect.any(Number) } },
    });
    expect(signal.aborted).toBe(false);
    webSocket.send({ jsonrpc: "2.0", method: "$/cancelRequest", params: { id: 1 } });
    expect(await webSocket.next()).toMatchObject({ id: 1, error: { data: { name: "cancelled" } } });
    expect(await webSocket.call("session/command", long, 3)).toHaveProperty("result");
  });
});

describe("connections", () => {
  it("are bounded: one more is refused with 503, and capacity is free again when one ends", async () => {
    await using edge = await startEdge({ limits: { maxConnections: 1 } });
    const first = await openWebSocket(edge);
    await expect(openWebSocket(edge, "unix")).rejects.toThrow("503");
    const begun = edge.nextWait();
    first.send({ ...wait, id: 1 });
    const { signal } = await begun;
    first.raw.terminate();
    await aborted(signal);
    await using second = await openWebSocket(edge, "unix");
    expect(await second.call("session/list")).toHaveProperty("result");
  });

  it("are forgotten, all thousand of them", async () => {
    await using edge = await startEdge();
    const sockets: RawSocket[] = [];
    for (let at = 0; at < 10; at += 1) {
      sockets.push(...(await Promise.all(Array.from({ length: 100 }, () => rawWebSocket(edge, "unix")))));
    }
    expect(edge.edge.load.connections).toBe(1_000);
    expect((await http(edge)).status).toBe(200);
    for (const { socket } of sockets) socket.end(frame(Buffer.from([0x03, 0xe8]), { opcode: opcodes.close }));
    const ends = await Promise.all(sockets.map(({ ended }) => ended));
    expect(new Set(ends.map((text) => closeOf(text)?.code))).toEqual(new Set([1000]));
    // Each end of a socket notices the close separately.
    await expect.poll(() => edge.edge.load.connections).toBe(0);
  });
});

async function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  signal.addEventListener("abort", () => resolve());
  await promise;
}
