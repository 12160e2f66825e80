import { existsSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { expect, test } from "vitest";
import { WebSocketServer } from "ws";
import { connectTo } from "../../../client/browser.ts";
import { httpCall } from "../../../client/http-client.ts";
import { http, openWebSocket } from "../../helpers/edge.ts";
import { filesBelow } from "../../helpers/files.ts";
import { startTokenStage, type TokenStage } from "../../helpers/token-stage.ts";
import { exchange, openPageSocket, signIn } from "../../helpers/web-page.ts";

const unauthorized = { status: 401, name: "unauthorized" };

/** Every text that the daemon has written to its state directory, and its log. */
function written({ stateDir, logged }: TokenStage): string {
  return [...logged, ...filesBelow(stateDir).values()].join("\n");
}

test("the console opens over the Unix socket alone, by a token that allows admin", async () => {
  await using stage = await startTokenStage();
  const params = { readOnly: true };
  expect(await stage.call(stage.main, "web/open", params)).toMatchObject({ name: "forbidden" });
  expect(await stage.call(stage.main, "web/close")).toMatchObject({ name: "forbidden" });
  await using socket = await stage.webSocket(stage.main);
  expect((await socket.call("web/open", params)).error.data).toMatchObject({ name: "forbidden" });
  const { socketPath } = stage.daemon.file;
  const token = await stage.token({ name: "ci", capabilities: ["observe", "prompt", "bash", "payload"] });
  await expect(httpCall("web/open", params, { socketPath, token })).rejects.toMatchObject({ data: { needs: "admin" } });
  const open = await stage.openWeb();
  expect(open.expiresAt).toBeGreaterThan(Date.now());
  expect(await httpCall("web/close", {}, { stateDir: stage.stateDir })).toEqual({ wasOpen: true });
  await expect(http({ port: open.port, socketPath }, { path: "/" })).rejects.toThrow("ECONNREFUSED");
});

test("a web token is valid at the console alone, and no other token is valid there", async () => {
  await using stage = await startTokenStage();
  const open = await stage.openWeb();
  const { port } = open;
  const token = await signIn(open);
  await using page = await openPageSocket(port, token);
  expect((await page.call("daemon/info")).result).toMatchObject({ stateDir: stage.stateDir });
  expect(await stage.call(token, "daemon/info")).toEqual(unauthorized);
  await expect(stage.webSocket(token)).rejects.toThrow("401");
  await expect(stage.webSocket(token, "/acp")).rejects.toThrow("401");
  const where = { port: 0, socketPath: stage.daemon.file.socketPath };
  await expect(openWebSocket(where, "unix", { authorization: `Bearer ${token}` })).rejects.toThrow("401");
  await expect(httpCall("daemon/info", {}, { ...where, token })).rejects.toThrow();
  const named = await stage.token({ name: "ci", capabilities: ["admin"] });
  for (const other of [stage.main, named]) await expect(openPageSocket(port, other)).rejects.toThrow("401");
});

test("a web token has the rights of its opening and never admin, is listed, and ends by token/revoke", async () => {
  await using stage = await startTokenStage();
  const open = await stage.openWeb();
  await using page = await openPageSocket(open.port, await signIn(open));
  const reader = await stage.openWeb({ readOnly: true });
  await using reading = await openPageSocket(reader.port, await signIn(reader));
  const created = await page.call("session/create", { cwd: stage.directory("cwd") });
  const { sessionId } = created.result;
  for (const [method, params] of [
    ["token/list", {}],
    ["token/create", { name: "x", capabilities: ["observe"] }],
    ["web/open", {}],
    ["session/create", { cwd: stage.root, approve: true }],
  ] as const)
    expect((await page.call(method, params)).error.data).toMatchObject({ name: "forbidden", needs: "admin" });
  expect((await page.call("session/bash", { sessionId, command: "true" })).error.data).toMatchObject({ needs: "bash" });
  expect((await reading.call("session/list")).result.sessions).toHaveLength(1);
  for (const [method, params] of [
    ["session/prompt", { sessionId, text: "x" }],
    ["daemon/subscribe", { dialogs: "answer" }],
  ] as const)
    expect((await reading.call(method, params)).error.data).toMatchObject({ name: "forbidden", needs: "prompt" });
  expect((await reading.call("daemon/subscribe", { dialogs: "observe", deliveries: true })).result).toEqual({});

  const { tokens } = await stage.call(stage.main, "token/list");
  expect(tokens.map(({ name, capabilities }: never) => [name, capabilities])).toEqual([
    ["main", ["observe", "prompt", "bash", "payload", "admin"]],
    ["web-1", ["observe", "prompt"]],
    ["web-2", ["observe"]],
  ]);
  expect(existsSync(join(stage.stateDir, "tokens.json"))).toBe(false);
  const web = { name: "web-1", capabilities: ["observe"] };
  expect(await stage.call(stage.main, "token/create", web)).toMatchObject({ name: "conflict" });
  expect(await stage.call(stage.main, "token/rotate", { name: "web-1" })).toMatchObject({ name: "forbidden" });
  expect(await stage.call(stage.main, "token/revoke", { name: "web-1" })).toEqual({});
  expect(await page.closed).toEqual({ code: 4401, reason: "the token has ended" });
  expect((await reading.call("session/list")).result.sessions).toHaveLength(1);
  expect(await stage.call(stage.main, "token/revoke", { name: "web-1" })).toMatchObject({ name: "token_not_found" });
});

test("a program that gets the port after the daemon's end gets a dead token, and nothing else of the page", async () => {
  await using stage = await startTokenStage();
  const open = await stage.openWeb();
  const { port, url } = open;
  const { token, instance } = (await exchange(open)).body;
  const heard: string[] = [];
  const headers: (string | undefined)[] = [];
  const impostor = createServer((_request, response) => response.end("hello"));
  new WebSocketServer({ server: impostor, handleProtocols: () => "pi-rpcd.v1" }).on("connection", (socket, request) => {
    headers.push(request.headers["sec-websocket-protocol"]);
    socket.on("message", (data) => {
      const { id, method } = JSON.parse(data.toString());
      heard.push(method);
      const result = { pid: process.pid, version: "0.1.0", protocol: 1, startedAt: 1, instance: "another" };
      socket.send(JSON.stringify({ jsonrpc: "2.0", id, result }));
    });
  });
  expect((await httpCall("daemon/info", {}, { stateDir: stage.stateDir })).instance).toBe(instance);
  await stage.daemon.stop();
  await new Promise<void>((done) => impostor.listen(port, "127.0.0.1", done));
  try {
    const refused = connectTo({ url, token, path: "/ws", instance });
    await expect(refused).rejects.toMatchObject({ kind: "another_daemon" });
    expect([heard, headers]).toEqual([["daemon/info"], [`pi-rpcd.v1, pi-rpcd.token.${token}`]]);
  } finally {
    impostor.closeAllConnections();
    await new Promise((done) => impostor.close(done));
  }
  for (const secret of [open.code, token]) expect(written(stage)).not.toContain(secret);
});

test("no later daemon knows the token, whatever its port", async () => {
  await using first = await startTokenStage();
  const open = await first.openWeb();
  const token = await signIn(open);
  await using page = await openPageSocket(open.port, token);
  await first.daemon.stop();
  expect(await page.closed).toEqual({ code: 1001, reason: "shutting down" });
  await using second = await startTokenStage();
  const again = await second.openWeb({ port: open.port });
  expect(again.port).toBe(open.port);
  await expect(openPageSocket(open.port, token)).rejects.toThrow("401");
  expect((await exchange({ port: open.port, code: open.code })).status).toBe(401);
});
