import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { Agent, request } from "node:http";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { describe, expect, it, vi } from "vitest";
import { createValidator } from "../../../protocol/validation.ts";
import { createEdge } from "../../../server/edge/app.ts";
import { createDispatcher } from "../../../server/rpc/dispatcher.ts";
import {
  authorization,
  deliveryId,
  fakeCore,
  http,
  json,
  openWebSocket,
  rawSocket,
  startEdge,
  type TestEdge,
} from "../../helpers/edge.ts";
import { frame, opcodes, upgraded } from "./frames.ts";

const listing = '{"jsonrpc":"2.0","id":1,"method":"session/list"}';

describe("an edge that closes", () => {
  it("closes every WebSocket with 1001, tells its peers, and removes its socket file", async () => {
    await using edge = await startEdge();
    const sockets = [await openWebSocket(edge, "tcp"), await openWebSocket(edge, "unix")];
    const wait = edge.nextWait();
    sockets[0]?.send({ jsonrpc: "2.0", id: 1, method: "delivery/wait", params: { deliveryId } });
    const { signal, peer } = await wait;
    await edge.edge.close();
    for (const { closed } of sockets) expect(await closed).toEqual({ code: 1001, reason: "shutting down" });
    expect([signal.aborted, peer?.gone.aborted]).toEqual([true, true]);
    expect(edge.edge.connections).toBe(0);
    expect(existsSync(edge.socketPath)).toBe(false);
    await expect(http(edge)).rejects.toThrow();
  });

  it("gives the same promise however often it is asked", async () => {
    await using edge = await startEdge();
    expect(edge.edge.close()).toBe(edge.edge.close(5));
  });

  it("lets HTTP requests have their answer, and ends sockets that wait for none", async () => {
    const { promise, resolve } = Promise.withResolvers<unknown>();
    const handler = vi.fn(() => promise);
    await using edge = await startEdge({ handlers: { "session/list": handler }, limits: { closeTimeoutMs: 10_000 } });
    using agent = kept();
    expect((await overKept(edge, agent.agent, "GET", "/healthz")).status).toBe(200);
    using idle = rawSocket(edge);
    await once(idle.socket, "connect");
    const asked = overKept(edge, agent.agent, "POST", "/v1/rpc", listing);
    await vi.waitUntil(() => handler.mock.calls.length === 1);
    const closed = edge.edge.close();
    expect(await idle.ended).toBe("");
    await expect(http(edge)).rejects.toThrow();
    resolve({ sessions: [] });
    expect(await asked).toEqual({ status: 200, text: '{"jsonrpc":"2.0","id":1,"result":{"sessions":[]}}' });
    await closed;
  });

  it("refuses what comes on a socket that is still open", async () => {
    const { promise, resolve } = Promise.withResolvers<unknown>();
    const handler = vi.fn(() => promise);
    await using edge = await startEdge({ handlers: { "session/list": handler }, limits: { closeTimeoutMs: 10_000 } });
    using socket = rawSocket(edge);
    const head = `POST /v1/rpc HTTP/1.1\r\nhost: localhost:${edge.port}\r\nauthorization: ${authorization.authorization}`;
    const one = `${head}\r\ncontent-type: application/json\r\ncontent-length: ${listing.length}\r\n\r\n${listing}`;
    socket.socket.write(one);
    await vi.waitUntil(() => handler.mock.calls.length === 1);
    const closed = edge.edge.close();
    const { promise: written, resolve: wrote } = Promise.withResolvers<void>();
    socket.socket.write(one, () => wrote());
    await written;
    resolve({ sessions: [] });
    const text = await socket.ended;
    expect(text).toMatch(/^HTTP\/1\.1 200 /);
    expect(handler).toHaveBeenCalledTimes(1);
    await closed;
  });

  it("cuts off what has not ended in time: calls, silent peers, half a request", async () => {
    await using edge = await startEdge();
    const wait = edge.nextWait();
    const call = { jsonrpc: "2.0", id: 1, method: "delivery/wait", params: { deliveryId } };
    const asked = http(edge, { method: "POST", path: "/v1/rpc", headers: json, body: JSON.stringify(call) });
    const outcome = expect(asked).rejects.toThrow();
    const { signal } = await wait;
    using silent = await upgraded(edge, "unix");
    using half = rawSocket(edge);
    half.socket.write("POST /v1/rpc HTTP/1.1\r\n");
    await edge.edge.close(30);
    await outcome;
    await silent.ended;
    await half.ended;
    expect(signal.aborted).toBe(true);
    expect(edge.edge.connections).toBe(0);
  });

  it("runs nothing that a peer says after the close", async () => {
    const handler = vi.fn(() => ({ sessions: [] }));
    await using edge = await startEdge({ handlers: { "session/list": handler } });
    using socket = await upgraded(edge);
    const closed = edge.edge.close();
    socket.socket.write(Buffer.concat([frame(opcodes.text, listing), frame(opcodes.close, Buffer.from([3, 0xe9]))]));
    await closed;
    await socket.ended;
    expect(handler).not.toHaveBeenCalled();
  });

  it("leaves a socket file that another daemon has put in the place of its own", async () => {
    await using edge = await startEdge();
    rmSync(edge.socketPath);
    const other = createServer().listen(edge.socketPath);
    await once(other, "listening");
    await edge.edge.close();
    expect(existsSync(edge.socketPath)).toBe(true);
    other.close();
    await once(other, "close");
  });
});

describe("an edge that does not listen", () => {
  it("closes at once", async () => {
    await bare().close();
  });

  it("on the Unix socket frees its port when it is closed", async () => {
    const directory = mkdtempSync(join(tmpdir(), "edge-"));
    await using first = await startEdge();
    const edge = bare();
    await expect(edge.listen({ socketPath: first.socketPath, port: 0 })).rejects.toMatchObject({
      kind: "daemon_already_running",
    });
    await edge.close();
    expect(existsSync(first.socketPath)).toBe(true);
    rmSync(directory, { recursive: true });
  });
});

function bare() {
  const log = pino({ level: "silent" });
  const { handlers } = fakeCore();
  const dispatcher = createDispatcher({ handlers, validator: createValidator(), validateResults: false, log });
  return createEdge({ dispatcher, token: "t", log });
}

function kept(): Disposable & { readonly agent: Agent } {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  return { agent, [Symbol.dispose]: () => agent.destroy() };
}

/** One request on the agent's one socket, which stays open after it. */
async function overKept(edge: TestEdge, agent: Agent, method: string, path: string, body?: string) {
  const outgoing = request({ host: "127.0.0.1", port: edge.port, agent, method, path, headers: json });
  outgoing.end(body);
  const [response] = await once(outgoing, "response");
  let text = "";
  for await (const chunk of response) text += chunk;
  return { status: response.statusCode as number, text };
}
