import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { describe, expect, it, vi } from "vitest";
import type { Transport } from "../../../server/edge/admission.ts";
import { deliveryId, http, json, openWebSocket, startEdge } from "../../helpers/edge.ts";
import { patience } from "../../helpers/patience.ts";
import { rawSocket } from "./raw-socket.ts";
import { closeOf, frame, rawWebSocket } from "./raw-web-socket.ts";

describe.each<Transport>(["tcp", "unix"])("the end of the edge over %s", (transport) => {
  it("closes every WebSocket with 1001 and a reason", async () => {
    await using edge = await startEdge();
    const webSockets = [await openWebSocket(edge, transport), await openWebSocket(edge, transport)];
    await edge.edge.close();
    for (const { closed } of webSockets) expect(await closed).toEqual({ code: 1001, reason: "shutting down" });
    expect(edge.edge.load.connections).toBe(0);
  });

  it("closes them with 1012 if another daemon follows", async () => {
    await using edge = await startEdge();
    const { closed } = await openWebSocket(edge, transport);
    await edge.edge.close({ isRestart: true });
    expect(await closed).toEqual({ code: 1012, reason: "restarting" });
  });

  it("cancels the calls in progress", async () => {
    await using edge = await startEdge();
    const webSocket = await openWebSocket(edge, transport);
    const begun = edge.nextWait();
    webSocket.send({ jsonrpc: "2.0", id: 1, method: "delivery/wait", params: { deliveryId } });
    const { signal } = await begun;
    await edge.edge.close();
    expect(signal.aborted).toBe(true);
  });

  it("completes although a peer does not answer the close", async () => {
    await using edge = await startEdge({ limits: { closeTimeoutMs: 100 } });
    using silent = await rawWebSocket(edge, transport);
    await edge.edge.close();
    expect(closeOf(await silent.ended)).toEqual({ code: 1001, reason: "shutting down" });
  });

  it("completes although a peer neither reads nor answers, in the middle of a frame", async () => {
    await using edge = await startEdge({ limits: { closeTimeoutMs: 100 } });
    using silent = await rawWebSocket(edge, transport);
    silent.socket.pause();
    silent.socket.write(frame("x".repeat(1_000)).subarray(0, 500));
    await edge.edge.close();
  });

  it("ends sockets that are idle, halfway through a request, or waiting for an answer", async () => {
    await using edge = await startEdge({ limits: { closeTimeoutMs: 100 } });
    using idle = rawSocket(edge, transport);
    idle.socket.write(`GET /healthz HTTP/1.1\r\nhost: localhost:${edge.port}\r\n\r\n`);
    await idle.until((heard) => heard.includes("ok"));
    using half = rawSocket(edge, transport);
    half.socket.write("GET /healthz HTTP/1.1\r\nhost");
    const begun = edge.nextWait();
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "delivery/wait", params: { deliveryId } });
    const waiting = http(edge, { transport, method: "POST", path: "/v1/rpc", headers: json, body });
    const { signal } = await begun;
    const outcome = waiting.then(
      ({ status }) => status,
      () => "ended",
    );
    await edge.edge.close();
    await Promise.all([idle.ended, half.ended]);
    expect(await outcome).toBe("ended");
    await vi.waitUntil(() => signal.aborted, patience);
  });

  it("ends a socket whose upgrade was refused and that does not read", async () => {
    await using edge = await startEdge();
    using socket = rawSocket(edge, transport);
    socket.socket.pause();
    const host = `host: localhost:${edge.port}`;
    socket.socket.write(`GET /healthz HTTP/1.1\r\n${host}\r\n\r\n`.repeat(100));
    socket.socket.write(`GET /v1/ws HTTP/1.1\r\n${host}\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n`);
    await http(edge, { transport });
    await edge.edge.close();
  });

  it("lets a request that is in progress have its answer", async () => {
    const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    const handlers = {
      "session/list": async () => {
        begin();
        await released;
        return { sessions: [] };
      },
    };
    await using edge = await startEdge({ handlers, limits: { closeTimeoutMs: 30_000 } });
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "session/list" });
    const answer = http(edge, { transport, method: "POST", path: "/v1/rpc", headers: json, body });
    await begun;
    const closed = edge.edge.close();
    release();
    expect(await answer).toMatchObject({ status: 200, body: { id: 1, result: { sessions: [] } } });
    await closed;
  });

  it("accepts no connections afterwards, and leaves no socket file", async () => {
    await using edge = await startEdge();
    await edge.edge.close();
    await expect(http(edge, { transport })).rejects.toThrow();
    expect(existsSync(edge.socketPath)).toBe(false);
    expect(readdirSync(edge.directory)).toEqual([]);
  });
});

describe("close()", () => {
  it("always returns the same promise, and works before listen() too", async () => {
    await using edge = await startEdge();
    const first = edge.edge.close();
    expect(edge.edge.close()).toBe(first);
    await first;
    expect(edge.edge.close()).toBe(first);
  });

  it("refuses requests on a socket that is still open", async () => {
    await using edge = await startEdge({ limits: { closeTimeoutMs: 500 } });
    using silent = await rawWebSocket(edge);
    using kept = rawSocket(edge);
    const head = `GET /v1/ws HTTP/1.1\r\nhost: localhost:${edge.port}\r\nauthorization: ${json.authorization}\r\n`;
    kept.socket.write(head);
    await http(edge);
    const closed = edge.edge.close();
    await silent.until((heard) => closeOf(heard) !== undefined);
    kept.socket.write(
      "connection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
    );
    const answer = await kept.ended;
    expect(answer).toMatch(/^HTTP\/1\.1 503 /);
    expect(answer).toContain('"name":"shutting_down"');
    await closed;
    await silent.ended;
  });

  it("leaves nothing that keeps the process alive", async () => {
    const directory = mkdtempSync(join(tmpdir(), "edge-end-"));
    const helper = new URL("../../helpers/edge.ts", import.meta.url).href;
    const program = `
      import { openWebSocket, startEdge } from ${JSON.stringify(helper)};
      const edge = await startEdge();
      await (await openWebSocket(edge)).call("session/list");
      await openWebSocket(edge, "unix");
      await edge.edge.close();
      console.log("closed");`;
    const env = { ...process.env, TMPDIR: directory, NODE_OPTIONS: "" };
    const child = spawn(process.execPath, ["--input-type=module", "-e", program], {
      env,
      stdio: ["ignore", "pipe", "inherit"],
    });
    const output = await text(child.stdout);
    expect(output).toBe("closed\n");
    rmSync(directory, { recursive: true });
  });
});
