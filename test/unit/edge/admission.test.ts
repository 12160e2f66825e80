import { connect } from "node:net";
import { describe, expect, it } from "vitest";
import type { Transport } from "../../../server/edge/admission.ts";
import { http, isUsable, json, startEdge, type TestEdge, token } from "../../helpers/edge.ts";
import { bearer, type Head, heads, origin } from "./heads.ts";
import { rawSocket } from "./raw-socket.ts";

describe.each<Transport>(["tcp", "unix"])("who may come in over %s", (transport) => {
  it.each(heads)("decides on an HTTP request with $title", async (head) => {
    await using edge = await startEdge({ allowedHosts: ["Box.example:80"], allowedOrigins: [origin] });
    const expected = (transport === "unix" ? head.unixStatus : undefined) ?? head.status;
    const answer = await ask(edge, transport, head, "POST /v1/rpc", [
      "content-type: application/json",
      "content-length: 50",
      "connection: close",
    ]);
    expectAnswer(answer, expected);
  });

  it.each(heads)("decides on an upgrade with $title", async (head) => {
    await using edge = await startEdge({ allowedHosts: ["Box.example:80"], allowedOrigins: [origin] });
    const granted = (transport === "unix" ? head.unixStatus : undefined) ?? head.status;
    const expected = head.upgradeStatus ?? (granted === 200 ? 101 : granted);
    const answer = await ask(edge, transport, head, "GET /v1/ws", upgrade);
    expectAnswer(answer, expected);
    if (expected !== 101) expect(edge.edge.load.connections).toBe(0);
  });

  it("refuses a request without a Host", async () => {
    await using edge = await startEdge();
    using socket = rawSocket(edge, transport);
    socket.socket.write(`GET /healthz HTTP/1.0\r\n${bearer}\r\n\r\n`);
    expectAnswer(await socket.ended, 403);
  });

  it("refuses a Host that only the request's target names", async () => {
    await using edge = await startEdge();
    using socket = rawSocket(edge, transport);
    socket.socket.write("GET http://localhost/healthz HTTP/1.1\r\nhost: evil.example\r\nconnection: close\r\n\r\n");
    expectAnswer(await socket.ended, 403);
  });

  it("answers /healthz without a token, and says only that it lives", async () => {
    await using edge = await startEdge();
    const answer = await http(edge, { transport, path: "/healthz" });
    expect(answer).toMatchObject({ status: 200, text: '{"ok":true}' });
  });

  it.each([{ host: "evil.example" }, { origin: "https://evil.example" }, { origin: "null" }])(
    "refuses /healthz to a web page: %o",
    async (headers) => {
      await using edge = await startEdge();
      expect((await http(edge, { transport, path: "/healthz", headers })).status).toBe(403);
    },
  );

  it.each([
    "/healthz?a=b",
    "/healthz/",
    "//healthz",
    "/healthz/../v1/rpc",
    "/HEALTHZ",
    "/%68ealthz",
    "/",
    "/v1/rpc",
    "/nowhere",
  ])("asks for the token at %s", async (path) => {
    await using edge = await startEdge();
    expect((await http(edge, { transport, path })).status).toBe(401);
  });

  it("refuses before the body has arrived", async () => {
    await using edge = await startEdge();
    using socket = rawSocket(edge, transport);
    socket.socket.write(`POST /v1/rpc HTTP/1.1\r\nhost: localhost:${edge.port}\r\ncontent-length: 9000000000\r\n\r\n`);
    expect(await socket.until((text) => text.includes("\r\n\r\n"))).toMatch(/^HTTP\/1\.1 401 /);
  });

  it("refuses before a chunked body has arrived", async () => {
    await using edge = await startEdge();
    using socket = rawSocket(edge, transport);
    socket.socket.write(
      `POST /v1/rpc HTTP/1.1\r\nhost: localhost:${edge.port}\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhe`,
    );
    expect(await socket.until((text) => text.includes("\r\n\r\n"))).toMatch(/^HTTP\/1\.1 401 /);
  });

  it("answers a preflight without a CORS header", async () => {
    await using edge = await startEdge({ allowedOrigins: [origin] });
    const headers = {
      origin,
      "access-control-request-method": "POST",
      "access-control-request-headers": "authorization",
    };
    const answer = await http(edge, { transport, method: "OPTIONS", path: "/v1/rpc", headers });
    expect(answer.status).toBe(401);
    expect(Object.keys(answer.headers).filter((name) => name.startsWith("access-control-"))).toEqual([]);
  });
});

describe("many refused tokens", () => {
  it("get no answer above the rate, over HTTP and upgrades together", async () => {
    await using edge = await startEdge({ limits: { maxRefusedTokensPerMinute: 2 } });
    expect((await http(edge, { path: "/v1/rpc" })).status).toBe(401);
    expectAnswer(await ask(edge, "unix", { title: "", status: 0 }, "GET /v1/ws", upgrade), 401);
    await expect(http(edge, { path: "/v1/rpc" })).rejects.toThrow();
    expect(await ask(edge, "tcp", { title: "", status: 0 }, "GET /v1/ws", upgrade)).toBe("");
    await expect(
      http(edge, { path: "/v1/rpc", method: "POST", headers: { "content-type": "application/json" }, body: "{}" }),
    ).rejects.toThrow();
  });

  it("do not affect clients with a valid token", async () => {
    await using edge = await startEdge({ limits: { maxRefusedTokensPerMinute: 0 } });
    await expect(http(edge, { path: "/v1/rpc" })).rejects.toThrow();
    expect(await isUsable(edge)).toBe(true);
    expect((await http(edge)).status).toBe(200);
  });
});

describe("the token", () => {
  it("is in no log record", async () => {
    await using edge = await startEdge();
    const requests = [
      { path: `/v1/rpc?token=${token}`, headers: { authorization: `Bearer ${token}x` } },
      { path: `/%zz${token}`, headers: { authorization: `Bearer ${token}` } },
      { path: "/v1/rpc", method: "POST", headers: json, body: token },
      { path: `/${token}`, headers: json },
    ];
    for (const request of requests) expect((await http(edge, request)).text).not.toContain(token);
    await ask(
      edge,
      "tcp",
      { title: "", status: 0, headers: [`sec-websocket-protocol: pi-rpcd.token.${token}`] },
      "GET /nowhere",
      upgrade,
    );
    expect(edge.logged.join("")).not.toContain(token);
  });
});

describe("the addresses", () => {
  it("are loopback only", async () => {
    await using edge = await startEdge();
    const socket = connect({ host: "127.0.0.2", port: edge.port });
    const { promise, resolve } = Promise.withResolvers<string>();
    socket.once("connect", () => resolve("connected")).once("error", () => resolve("refused"));
    expect(await promise).toBe("refused");
    socket.destroy();
  });
});

const upgrade = [
  "connection: Upgrade",
  "upgrade: websocket",
  "sec-websocket-version: 13",
  "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==",
];

/** Writes the head by hand; resolves with the answer's head and the body received so far. */
async function ask(
  edge: TestEdge,
  transport: Transport,
  head: Head,
  line: string,
  more: readonly string[],
): Promise<string> {
  const { path = "", headers = [], host = (port: number): string => `127.0.0.1:${port}` } = head;
  using socket = rawSocket(edge, transport);
  const lines = [`${line}${path} HTTP/1.1`, `host: ${host(edge.port)}`, ...headers, ...more];
  const body = line.startsWith("POST") ? '{"jsonrpc":"2.0","method":"session/list","id":123}' : "";
  socket.socket.write(`${lines.join("\r\n")}\r\n\r\n${body}`);
  return await (line.startsWith("POST") ? socket.ended : socket.until((text) => text.includes("\r\n\r\n")));
}

function expectAnswer(answer: string, status: number): void {
  expect(answer.split("\r\n")[0]).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
  expect(answer).not.toMatch(/access-control-/i);
  expect(answer).not.toContain(token);
  if (status === 401) expect(answer).toMatch(/www-authenticate: Bearer/i);
  if (status > 399) expect(answer).toMatch(/content-type: application\/problem\+json/i);
}
