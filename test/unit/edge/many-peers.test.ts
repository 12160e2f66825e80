import { readFileSync } from "node:fs";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { describe, expect, it } from "vitest";
import { Grant } from "../../../server/rpc/grant.ts";
import {
  authorization,
  http,
  isUsable,
  json,
  openWebSocket,
  startEdge,
  type TestEdge,
  tlsFiles,
  token,
} from "../../helpers/edge.ts";
import { rawSocket } from "./raw-socket.ts";

const wait = { jsonrpc: "2.0", id: 1, method: "delivery/wait", params: { deliveryId: crypto.randomUUID() } };
const list = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "session/list" });
const overloaded = { status: 503, body: { name: "overloaded", retryable: true, retryAfterMs: 1_000 } };

describe("HTTP requests in progress", () => {
  it("are bounded over all sockets and transports, and capacity is free again when one ends", async () => {
    await using edge = await startEdge({ limits: { maxHttpRequests: 1 } });
    using waiting = rawSocket(edge, "unix");
    const begun = edge.nextWait();
    waiting.socket.write(post(JSON.stringify(wait)));
    const { signal } = await begun;
    const refused = await http(edge, { path: "/v1/rpc", method: "POST", headers: json, body: list });
    expect(refused).toMatchObject({ ...overloaded, headers: { "retry-after": "1" } });
    waiting.socket.destroy();
    if (!signal.aborted) await new Promise((resolve) => signal.addEventListener("abort", resolve));
    await expect.poll(() => isUsable(edge)).toBe(true);
  });

  it("are bounded in bytes, also if their length is not declared", async () => {
    await using edge = await startEdge({ limits: { maxHttpBytes: 4_000, maxBodyBytes: 3_000 } });
    using unsaid = rawSocket(edge);
    unsaid.socket.write(
      `POST /v1/rpc HTTP/1.1\r\nhost: localhost:${edge.port}\r\nauthorization: Bearer ${token}\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n5\r\n     \r\n`,
    );
    const body = list.padEnd(2_000);
    const ask = () => http(edge, { path: "/v1/rpc", method: "POST", headers: json, body });
    await expect.poll(async () => (await ask()).status).toBe(503);
    expect(await ask()).toMatchObject(overloaded);
    // Only its few bytes count once it has arrived.
    const begun = edge.nextWait();
    const rest = JSON.stringify(wait);
    unsaid.socket.write(`${rest.length.toString(16)}\r\n${rest}\r\n0\r\n\r\n`);
    await begun;
    expect((await ask()).status).toBe(200);
  });

  function post(body: string): string {
    const head = Object.entries({ ...json, host: "localhost", "content-length": body.length });
    return `POST /v1/rpc HTTP/1.1\r\n${head.map(([name, value]) => `${name}: ${value}`).join("\r\n")}\r\n\r\n${body}`;
  }
});

describe("the connections of one named token", () => {
  it("are bounded, and do not block the daemon's own token", async () => {
    const named = new Grant({ name: "guest", capabilities: ["observe"] });
    const main = new Grant({ name: "main", capabilities: ["admin"] });
    const grants = new Map([
      ["guest", named],
      [token, main],
    ]);
    const tokens = { find: (text: string) => grants.get(text), onEnded: () => {} };
    await using edge = await startEdge({ tokens, limits: { maxConnectionsPerToken: 1 } });
    const upgrade = {
      authorization: "Bearer guest",
      connection: "Upgrade",
      upgrade: "websocket",
      "sec-websocket-version": "13",
      "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
    };
    const head = Object.entries({ host: "localhost", ...upgrade }).map(([name, value]) => `${name}: ${value}`);
    const guest = async (): Promise<[string | undefined, Socket]> => {
      const { socket, until } = rawSocket(edge, "unix");
      socket.write(`GET /v1/ws HTTP/1.1\r\n${head.join("\r\n")}\r\n\r\n`);
      return [(await until((text) => text.includes("\r\n\r\n"))).split(" ")[1], socket];
    };
    const [first, socket] = await guest();
    const [second] = await guest();
    expect([first, second]).toEqual(["101", "503"]);
    await using one = await openWebSocket(edge);
    await using another = await openWebSocket(edge);
    expect([one.raw.readyState, another.raw.readyState]).toEqual([1, 1]);
    socket.destroy();
    await expect.poll(async () => (await guest())[0]).toBe("101");
  });
});

describe("the sockets from one address beyond loopback", () => {
  it("are bounded, and those of loopback and the Unix socket are counted separately", async () => {
    await using edge = await startEdge({ tls: true, limits: { maxSocketsPerAddress: 1 } });
    const open = (): Promise<Socket> => {
      const socket = connect({ host: "127.0.0.1", port: edge.tlsPort });
      socket.on("error", () => {});
      return new Promise((resolve) => socket.once("connect", () => resolve(socket)));
    };
    const first = await open();
    const second = await open();
    second.resume();
    if (!second.closed) await new Promise((resolve) => second.once("close", resolve));
    expect(first.destroyed).toBe(false);
    expect((await http(edge, { path: "/v1/rpc", headers: authorization })).status).toBe(405);
    expect(await isUsable(edge)).toBe(true);
    first.destroy();
    // Its end is noticed by itself.
    await expect.poll(() => isSecured(edge)).toBe(true);
  });
});

describe("sockets without a token", () => {
  it.each(["tcp", "tls"] as const)(
    "over %s do not block clients with a token: a further one displaces the oldest",
    async (transport) => {
      const bounds = { maxSocketsWithoutToken: 2, maxSocketsWithoutTokenPerAddress: 2 };
      // No socket is closed for a deadline.
      const long = 3_600_000;
      const share = { ...bounds, tokenTimeoutMs: long, headersTimeoutMs: long, requestTimeoutMs: long };
      await using edge = await startEdge({ tls: true, limits: share });
      const port = transport === "tcp" ? edge.port : edge.tlsPort;
      await using stays = await openWebSocket(edge);
      const sockets = Array.from({ length: 3 }, () => connect({ host: "127.0.0.1", port }).on("error", () => {}));
      const [oldest, ...others] = sockets as [Socket, ...Socket[]];
      oldest.resume();
      await new Promise((resolve) => oldest.once("close", resolve));
      expect(others.map(({ destroyed }) => destroyed)).toEqual([false, false]);
      if (transport === "tcp") expect(await isUsable(edge)).toBe(true);
      else expect(await isSecured(edge)).toBe(true);
      // Those with a token are not counted.
      expect((await stays.call("session/list")).result).toEqual({ sessions: [] });
      for (const socket of sockets) socket.destroy();
    },
  );

  it("each count, also those from one port of a peer to several addresses of the machine", async () => {
    const limits = { maxSocketsWithoutToken: 2, maxSocketsWithoutTokenPerAddress: 2 };
    await using edge = await startEdge({ tls: { ...tlsFiles, listen: "0.0.0.0:0" }, limits });
    const from = await new Promise<number>((resolve) => {
      const server = createServer().listen(0, "127.0.0.1", () => {
        const { port } = server.address() as AddressInfo;
        server.close(() => resolve(port));
      });
    });
    const sockets = [1, 2, 3, 4].map((n) =>
      connect({ host: `127.0.0.${n}`, port: edge.tlsPort, localAddress: "127.0.0.1", localPort: from }),
    );
    const closed = sockets.map((socket) => new Promise((resolve) => socket.resume().once("close", resolve)));
    for (const socket of sockets) socket.on("error", () => {});
    await Promise.any(closed);
    for (const socket of sockets) socket.destroy();
  });

  it("have a deadline, which those with a token do not have", async () => {
    await using edge = await startEdge({ limits: { tokenTimeoutMs: 100 } });
    // On a busy machine a handshake may itself take longer.
    const open = (): ReturnType<typeof openWebSocket> => openWebSocket(edge).catch(open);
    await using stays = await open();
    using silent = rawSocket(edge);
    expect(await silent.ended).toMatch(/^HTTP\/1\.1 408 .*No request with a token arrived in time\./s);
    expect((await stays.call("session/list")).result).toEqual({ sessions: [] });
  });
});

/** Whether a handshake succeeds. */
function isSecured(edge: TestEdge): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connectTls({ host: "localhost", port: edge.tlsPort, ca: readFileSync(tlsFiles.tlsCert) });
    socket.once("secureConnect", () => {
      resolve(true);
      socket.destroy();
    });
    socket.once("error", () => resolve(false));
    socket.once("close", () => resolve(false));
  });
}
