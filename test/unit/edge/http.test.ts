import { describe, expect, it } from "vitest";
import type { Transport } from "../../../server/edge/admission.ts";
import { authorization, http, isUsable, json, startEdge } from "../../helpers/edge.ts";
import { rawSocket } from "./raw-socket.ts";

const list = '{"jsonrpc":"2.0","id":1,"method":"session/list"}';
const rpc = { method: "POST", path: "/v1/rpc", headers: json, body: list };

describe.each<Transport>(["tcp", "unix"])("HTTP over %s", (transport) => {
  it.each([
    ["an unknown path", { path: "/nowhere" }, 404, "method_not_found"],
    ["the path with a trailing slash", { ...rpc, path: "/v1/rpc/" }, 404, "method_not_found"],
    ["the path in capitals", { ...rpc, path: "/V1/RPC" }, 404, "method_not_found"],
    ["a path that cannot be decoded", { path: "/%zz" }, 400, "invalid_request"],
    ["another method", { path: "/v1/rpc" }, 405, "method_not_found"],
    ["a method that HTTP does not know here", { method: "PROPFIND", path: "/v1/rpc" }, 405, "method_not_found"],
    ["a POST to the health check", { ...rpc, path: "/healthz" }, 405, "method_not_found"],
    ["a WebSocket path without an upgrade", { path: "/v1/ws" }, 426, "invalid_request"],
    [
      "a body of plain text",
      { ...rpc, headers: { ...authorization, "content-type": "text/plain" } },
      415,
      "invalid_request",
    ],
    [
      "a body of a form",
      { ...rpc, headers: { ...authorization, "content-type": "application/x-www-form-urlencoded" } },
      415,
      "invalid_request",
    ],
    ["a body without a type", { ...rpc, headers: authorization }, 415, "invalid_request"],
    [
      "a body of a type that begins as JSON's",
      { ...rpc, headers: { ...authorization, "content-type": "application/jsonp" } },
      415,
      "invalid_request",
    ],
    [
      "two types",
      { ...rpc, headers: { ...authorization, "content-type": "text/plain, application/json" } },
      415,
      "invalid_request",
    ],
  ])("answers %s with %o: status %i, as a problem", async (_title, question, status, name) => {
    await using edge = await startEdge();
    const answer = await http(edge, {
      transport,
      ...question,
      headers: { ...authorization, ...("headers" in question ? question.headers : {}) },
    });
    expect(answer.status).toBe(status);
    expect(answer.headers["content-type"]).toMatch(/^application\/problem\+json/);
    expect(answer.body).toEqual({
      type: "about:blank",
      title: expect.any(String),
      status,
      detail: expect.stringMatching(/\.$/),
      name,
      retryable: false,
    });
  });

  it.each([
    ["OPTIONS", "/v1/rpc", {}, 405, "POST"],
    ["OPTIONS", `/v1/sessions/s`, {}, 405, "GET, HEAD, DELETE"],
    ["DELETE", "/v1/sessions", {}, 405, "POST, GET, HEAD"],
    ["POST", "/docs", { "content-type": "application/json" }, 405, "GET, HEAD"],
    ["PUT", "/v1/sessions/s/name", { "content-type": "text/plain", "content-length": "1" }, 415, undefined],
    ["DELETE", "/v1/sessions/s/queue", { "content-type": "text/plain" }, 415, undefined],
    ["POST", "/v1/sessions/s/abort", { "transfer-encoding": "chunked" }, 415, undefined],
    ["GET", "/v1/sessions", { accept: "text/html" }, 406, undefined],
    ["GET", "/v1/sessions", { accept: "application/json;q=0, */*" }, 406, undefined],
    ["POST", "/v1/rpc", { "content-type": "application/json", accept: "text/html" }, 406, undefined],
  ])("refuses %s %s with %o by %i", async (method, path, headers, status, allow) => {
    await using edge = await startEdge();
    const answer = await http(edge, { transport, method, path, headers: { ...authorization, ...headers } });
    expect(answer).toMatchObject({ status, body: { status, name: expect.any(String) } });
    expect(answer.headers.allow?.split(", ").sort()).toEqual(allow?.split(", ").sort());
    expect(await isUsable(edge)).toBe(true);
  });

  it.each(["application/json", "*/*", "application/*;q=0.1, text/html", "text/html, */*;q=0.1", ""])(
    "answers a client that accepts %j, and HEAD as GET",
    async (accept) => {
      await using edge = await startEdge();
      const headers = { ...authorization, accept };
      expect(await http(edge, { transport, path: "/v1/sessions", headers })).toMatchObject({
        status: 200,
        body: { sessions: [] },
      });
      const head = await http(edge, { transport, method: "HEAD", path: "/v1/sessions", headers });
      expect(head).toMatchObject({ status: 200, text: "", headers: { "content-length": "15" } });
    },
  );

  it("serves its documents only to clients with a token", async () => {
    await using edge = await startEdge();
    for (const path of ["/openapi.json", "/openrpc.json", "/docs", "/readyz"]) {
      expect((await http(edge, { transport, path })).status).toBe(401);
    }
    const ask = (path: string) => http(edge, { transport, path, headers: authorization });
    expect((await ask("/openapi.json")).body).toMatchObject({ openapi: "3.1.0" });
    expect((await ask("/openrpc.json")).body).toMatchObject({ openrpc: "1.3.2" });
    const page = await ask("/docs");
    expect(page.text).toMatch(/^<!doctype html>/);
    expect(page.headers).toMatchObject({
      "content-type": "text/html; charset=utf-8",
      "content-security-policy": expect.stringMatching(/^default-src 'none'/),
    });
  });

  it("names the methods of a path, and the protocol to upgrade to", async () => {
    await using edge = await startEdge();
    const headers = authorization;
    expect((await http(edge, { transport, headers, path: "/v1/rpc" })).headers.allow).toBe("POST");
    expect((await http(edge, { transport, headers, method: "DELETE", path: "/v1/ws" })).headers.allow).toMatch(/^GET/);
    expect((await http(edge, { transport, headers, path: "/v1/ws" })).headers.upgrade).toBe("websocket");
  });

  it.each(["application/json; charset=utf-8", "Application/JSON", "application/json;charset=UTF-8"])(
    "accepts a body of %s",
    async (type) => {
      await using edge = await startEdge();
      const answer = await http(edge, { transport, ...rpc, headers: { ...authorization, "content-type": type } });
      expect(answer).toMatchObject({ status: 200, body: { id: 1, result: { sessions: [] } } });
      expect(answer.headers["content-type"]).toMatch(/^application\/json/);
    },
  );

  it("answers an empty body with a parse error", async () => {
    await using edge = await startEdge();
    const answer = await http(edge, { transport, ...rpc, body: "" });
    expect(answer).toMatchObject({ status: 400, body: { id: null, error: { code: -32700 } } });
  });

  it("refuses a body over the limit with 413 by its length alone", async () => {
    await using edge = await startEdge({ limits: { maxBodyBytes: 100 } });
    using socket = rawSocket(edge, transport);
    socket.socket.write(`${head(edge.port)}content-length: 101\r\n\r\n`);
    const answer = await socket.until((text) => text.includes("too_large"));
    expect(answer).toMatch(/^HTTP\/1\.1 413 /);
    expect(await isUsable(edge)).toBe(true);
  });

  it("accepts a body at the limit, and refuses a chunked one over it with 413 when it gets there", async () => {
    await using edge = await startEdge({ limits: { maxBodyBytes: 1_000 } });
    expect((await http(edge, { transport, ...rpc, body: list.padEnd(1_000) })).status).toBe(200);
    using socket = rawSocket(edge, transport);
    socket.socket.write(`${head(edge.port)}transfer-encoding: chunked\r\n\r\n`);
    const chunk = `1f4\r\n${" ".repeat(500)}\r\n`;
    socket.socket.write(chunk.repeat(3));
    expect(await socket.until((text) => text.includes("too_large"))).toMatch(/^HTTP\/1\.1 413 /);
    expect(await isUsable(edge)).toBe(true);
  });

  it("accepts a chunked body", async () => {
    await using edge = await startEdge();
    using socket = rawSocket(edge, transport);
    const chunks = [...list].map((letter) => `1\r\n${letter}\r\n`).join("");
    socket.socket.write(`${head(edge.port)}transfer-encoding: chunked\r\n\r\n${chunks}0\r\n\r\n`);
    expect(await socket.until((text) => text.includes('"id":1'))).toMatch(/^HTTP\/1\.1 200 /);
  });

  it("answers pipelined requests in order", async () => {
    await using edge = await startEdge();
    using socket = rawSocket(edge, transport);
    const ids = Array.from({ length: 20 }, (_, at) => at);
    for (const id of ids) {
      const body = `{"jsonrpc":"2.0","id":${id},"method":"session/list"}`;
      socket.socket.write(`${head(edge.port)}content-length: ${body.length}\r\n\r\n${body}`);
    }
    const answers = await socket.until((text) => text.includes('"id":19'));
    expect([...answers.matchAll(/"id":(\d+)/g)].map(([, id]) => Number(id))).toEqual(ids);
  });

  it("refuses pipelined requests above the limit, in order and on the same socket", async () => {
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    const handlers = {
      "session/list": async () => {
        await released;
        return { sessions: [] };
      },
    };
    await using edge = await startEdge({ limits: { maxRequestsPerSocket: 2 }, handlers });
    using socket = rawSocket(edge, transport);
    for (let at = 0; at < 3; at += 1)
      socket.socket.write(`${head(edge.port)}content-length: ${list.length}\r\n\r\n${list}`);
    expect((await http(edge, { transport })).status).toBe(200);
    release();
    const answers = await socket.until((text) => text.includes("overloaded"));
    expect([...answers.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status)).toEqual(["200", "200", "503"]);
    expect(answers).toMatch(/retry-after: 1/i);
  });

  it("ignores the offer of another protocol than WebSocket", async () => {
    await using edge = await startEdge();
    const offer = {
      ...json,
      connection: "Upgrade, HTTP2-Settings",
      upgrade: "h2c",
      "http2-settings": "AAMAAABkAAQAAP__",
    };
    const answer = await http(edge, { transport, ...rpc, headers: offer });
    // Before 22.21, Node cannot ignore an offer.
    expect([200, 400]).toContain(answer.status);
    expect(await isUsable(edge)).toBe(true);
  });

  it("refuses a body with a content encoding", async () => {
    await using edge = await startEdge();
    const answer = await http(edge, { transport, ...rpc, headers: { ...json, "content-encoding": "gzip" } });
    expect(answer.status).toBe(415);
  });

  it("reveals no software in its headers", async () => {
    await using edge = await startEdge();
    const { headers } = await http(edge, { transport, ...rpc });
    const safe = ["cache-control", "x-content-type-options"];
    expect(Object.keys(headers).sort()).toEqual(
      ["connection", "content-length", "content-type", "date", ...safe].sort(),
    );
  });

  it("has headers in each JSON answer that prevent caching and interpretation as a page", async () => {
    await using edge = await startEdge();
    const safe = { "cache-control": "no-store", "x-content-type-options": "nosniff" };
    const answers = [
      rpc,
      ...["/healthz", "/v1/sessions", "/openapi.json", "/openrpc.json", "/nowhere"].map((path) => ({ path })),
    ];
    for (const question of answers) {
      expect((await http(edge, { transport, headers: authorization, ...question })).headers).toMatchObject(safe);
    }
    expect((await http(edge, { transport, path: "/v1/sessions" })).headers).toMatchObject(safe);
  });

  it.each(["cwd=%ff", "cwd=%zz", "a=b&cwd=/%e4%b8"])("refuses a query that cannot be decoded: %s", async (query) => {
    await using edge = await startEdge();
    const ask = (text: string) => http(edge, { transport, headers: authorization, path: `/v1/sessions?${text}` });
    expect(await ask(query)).toMatchObject({ status: 400, body: { name: "invalid_request" } });
    expect((await ask("cwd=%e4%b8%ad%25+a")).status).toBe(200);
  });

  it.each(["gzip, chunked", "gzip"])("refuses the transfer coding %s with 501, and closes", async (coding) => {
    await using edge = await startEdge({ limits: { closeTimeoutMs: 100 } });
    using socket = rawSocket(edge, transport);
    socket.socket.write(`${head(edge.port)}transfer-encoding: ${coding}\r\n\r\n1\r\nx\r\n0\r\n\r\n`);
    expect((await socket.ended).match(/HTTP\/1\.1 \d+/g)).toEqual(["HTTP/1.1 501"]);
  });

  it.each([
    ["body", 413, `${head(0)}content-length: 6000000\r\n\r\n`, ""],
    ["body in chunks", 413, `${head(0)}transfer-encoding: chunked\r\n\r\n`, "5b8d80\r\n"],
    ["head", 431, `${head(0)}x: `, ""],
  ])("lets who writes all of a %s that is too long read the %i, and closes", async (_title, status, begin, chunk) => {
    await using edge = await startEdge({ limits: { maxBodyBytes: 1_000 } });
    using socket = rawSocket(edge, transport);
    socket.socket.pause();
    socket.socket.write(begin.replace("localhost:0", `localhost:${edge.port}`) + chunk);
    // Larger than the system's buffers: the end is written only if the daemon reads.
    const written = Promise.withResolvers<Error | null | undefined>();
    socket.socket.write("x".repeat(6_000_000), written.resolve);
    expect(await written.promise).toBeFalsy();
    socket.socket.resume();
    expect(await socket.until((text) => text.includes("too_large"))).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    expect(await isUsable(edge)).toBe(true);
  });

  it("disconnects a client that keeps sending a body that was refused", async () => {
    await using edge = await startEdge({ limits: { maxBodyBytes: 1_000, maxDiscardedBytes: 100_000 } });
    using socket = rawSocket(edge, transport);
    socket.socket.write(`${head(edge.port)}content-length: ${2 ** 30}\r\n\r\n`);
    const more = (error?: Error | null): void => {
      if (!error) socket.socket.write("x".repeat(50_000), more);
    };
    more();
    expect(await socket.ended).toMatch(/^HTTP\/1\.1 413 /);
    expect(await isUsable(edge)).toBe(true);
  });
});

describe.each<Transport>(["tcp", "unix"])("upgrades over %s", (transport) => {
  const webSocket =
    "upgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

  it.each([
    ["another path", "GET /v1/rpc", webSocket, 404],
    ["no key", "GET /v1/ws", "upgrade: websocket\r\nsec-websocket-version: 13\r\n", 400],
    ["an invalid key", "GET /v1/ws", webSocket.replace("dGhl", "****"), 400],
    ["another version", "GET /v1/ws", webSocket.replace("13", "12"), 400],
    ["version 8", "GET /v1/ws", webSocket.replace("13", "8"), 400],
    ["two versions", "GET /v1/ws", `${webSocket}sec-websocket-version: 8\r\n`, 400],
    ["subprotocols that cannot be read", "GET /v1/ws", `${webSocket}sec-websocket-protocol: a,,b\r\n`, 400],
  ])("with %s are refused with a problem, and their socket is closed", async (_title, line, upgrade, status) => {
    await using edge = await startEdge();
    using socket = rawSocket(edge, transport);
    socket.socket.write(
      `${line} HTTP/1.1\r\nhost: localhost:${edge.port}\r\nauthorization: ${authorization.authorization}\r\nconnection: Upgrade\r\n${upgrade}\r\n`,
    );
    const answer = await socket.ended;
    expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    expect(answer).toMatch(/"name":"[a-z_]+"/);
    expect(edge.edge.load.connections).toBe(0);
  });

  it("of HTTP/1.0 are refused", async () => {
    await using edge = await startEdge();
    using socket = rawSocket(edge, transport);
    const bearer = `authorization: ${authorization.authorization}`;
    socket.socket.write(
      `GET /v1/ws HTTP/1.0\r\nhost: localhost:${edge.port}\r\n${bearer}\r\nconnection: Upgrade\r\n${webSocket}\r\n`,
    );
    expect(await socket.ended).toMatch(/^HTTP\/1\.1 400 /);
  });
});

function head(port: number): string {
  const headers = Object.entries(json).map(([name, value]) => `${name}: ${value}\r\n`);
  return `POST /v1/rpc HTTP/1.1\r\nhost: localhost:${port}\r\n${headers.join("")}`;
}
