import { once } from "node:events";
import { readFileSync, statSync } from "node:fs";
import { connect as connectSocket } from "node:net";
import { join } from "node:path";
import { expect, test } from "vitest";
import { connect } from "../../../client/index.ts";
import type { TestWebSocket } from "../../helpers/edge.ts";
import { startTokenStage } from "../../helpers/token-stage.ts";

const closed = { code: 4401, reason: "the token has ended" };
const unauthorized = { status: 401, name: "unauthorized" };

/** Every message that a WebSocket receives from now on. */
function listen({ raw }: TestWebSocket): readonly string[] {
  const heard: string[] = [];
  raw.on("message", (data) => heard.push(data.toString()));
  return heard;
}

test("a revoked token is refused from the next request on, and its WebSockets are closed with 4401", async () => {
  await using stage = await startTokenStage();
  const token = await stage.token({ name: "ci", capabilities: ["observe"] });
  const other = await stage.token({ name: "other", capabilities: ["observe"] });
  await using first = await stage.webSocket(token);
  await using second = await stage.webSocket(token);
  await using others = await stage.webSocket(other);
  expect(await stage.call(stage.main, "token/revoke", { name: "ci" })).toEqual({});
  expect(await stage.call(token, "session/list")).toEqual(unauthorized);
  await expect(stage.webSocket(token)).rejects.toThrow("401");
  expect([await first.closed, await second.closed]).toEqual([closed, closed]);
  expect((await others.call("session/list")).result).toEqual({ sessions: [] });
  const { tokens } = await stage.call(stage.main, "token/list");
  expect(tokens.map(({ name }: { name: string }) => name)).toEqual(["main", "other"]);
  expect(await stage.call(stage.main, "token/revoke", { name: "ci" })).toMatchObject({ name: "token_not_found" });
});

test("a connection whose token is revoked during its calls gets no more answers or notifications", async () => {
  await using stage = await startTokenStage();
  const { sessionId } = await stage.call(stage.main, "session/create", { cwd: stage.directory("cwd") });
  const push = { sessionId, customType: "t", content: "x", triggerTurn: false, deliverAs: "nextTurn" };
  const { deliveryId } = await stage.call(stage.main, "delivery/push", push);
  const token = await stage.token({ name: "ci", capabilities: ["observe"] });
  await using webSocket = await stage.webSocket(token);
  await webSocket.call("session/subscribe", { sessionId });
  await using witness = await stage.webSocket(stage.main);
  await witness.call("session/subscribe", { sessionId });
  const heard = listen(webSocket);
  webSocket.send({ jsonrpc: "2.0", id: 2, method: "delivery/wait", params: { deliveryId } });
  const overHttp = stage.call(token, "delivery/wait", { deliveryId }).catch((error: unknown) => error);
  // Both calls are in progress when this one is answered.
  await expect.poll(async () => (await stage.call(stage.main, "token/list")).tokens[1].lastUsedAt).toBeTypeOf("number");
  webSocket.send({ jsonrpc: "2.0", id: 3, method: "session/get", params: { sessionId } });
  await expect.poll(() => heard.some((text) => text.includes('"id":3'))).toBe(true);
  await stage.call(stage.main, "token/revoke", { name: "ci" });
  await stage.call(stage.main, "session/prompt", { sessionId, text: "hi", wait: "settled" });
  await stage.call(stage.main, "delivery/cancel", { deliveryId });
  expect(await webSocket.closed).toEqual(closed);
  const isLater = (text: string) => /"id":2|"prompt\/|"run\/|cancelled/.test(text);
  for (let told = ""; !told.includes("cancelled"); ) {
    told = JSON.stringify(await witness.next());
    if (told.includes("run/ended")) expect(isLater(told)).toBe(true);
  }
  expect(heard.filter(isLater)).toEqual([]);
  expect(await overHttp).toBeInstanceOf(Error);
});

test("a stream of events ends with its token, also if another token has used its socket since", async () => {
  await using stage = await startTokenStage();
  const { sessionId } = await stage.call(stage.main, "session/create", { cwd: stage.directory("cwd") });
  const token = await stage.token({ name: "ci", capabilities: ["observe"] });
  const { hostname, port } = new URL(stage.daemon.file.url);
  const socket = connectSocket(Number(port), hostname);
  const get = (path: string, by: string, accept: string): void => {
    socket.write(
      `GET ${path} HTTP/1.1\r\nHost: ${hostname}:${port}\r\nAuthorization: Bearer ${by}\r\nAccept: ${accept}\r\n\r\n`,
    );
  };
  get(`/v1/sessions/${sessionId}/events`, token, "text/event-stream");
  await once(socket, "data");
  get("/v1/daemon", stage.main, "application/json");
  await expect.poll(async () => (await stage.call(stage.main, "token/list")).tokens[1].lastUsedAt).toBeTypeOf("number");
  const ended = once(socket, "close");
  socket.resume();
  await stage.call(stage.main, "token/revoke", { name: "ci" });
  await ended;
});

test("a client that rotates its own token gets the new one, and is then disconnected", async () => {
  await using stage = await startTokenStage();
  await stage.token({ name: "ci", capabilities: ["admin"] });
  for (const name of ["main", "ci"]) {
    const former =
      name === "main" ? stage.main : (await stage.call(readMain(stage.stateDir), "token/rotate", { name })).token;
    await using webSocket = await stage.webSocket(former);
    const { result } = await webSocket.call("token/rotate", { name });
    expect(result).toMatchObject({ name, token: expect.stringMatching(/^[\w-]{43}$/), rotatedAt: expect.any(Number) });
    expect(await webSocket.closed).toEqual(closed);
    expect(await stage.call(former, "session/list")).toEqual(unauthorized);
    expect(await stage.call(result.token, "session/list")).toEqual({ sessions: [] });
    // The same over HTTP, where only the socket can be closed.
    const again = await stage.call(result.token, "token/rotate", { name });
    expect(await stage.call(again.token, "session/list")).toEqual({ sessions: [] });
    expect(await stage.call(result.token, "session/list")).toEqual(unauthorized);
  }
});

test("the daemon's own token cannot be revoked, and daemon.json has its new value before rotation takes effect", async () => {
  await using stage = await startTokenStage();
  expect(await stage.call(stage.main, "token/revoke", { name: "main" })).toMatchObject({ name: "forbidden" });
  await using webSocket = await stage.webSocket(stage.main);
  const { token } = await stage.call(stage.main, "token/rotate", { name: "main" });
  await webSocket.closed;
  expect(readMain(stage.stateDir)).toBe(token);
  expect(stage.daemon.file).toMatchObject({ token, pid: process.pid });
  expect(readFileSync(join(stage.stateDir, "token"), "utf8").trim()).toBe(token);
});

test("a client of the library continues with the new token by itself, whichever call is in progress", async () => {
  await using stage = await startTokenStage();
  const client = await connect({ stateDir: stage.stateDir, reconnect: { firstDelayMs: 1 } });
  const connected = new Promise<void>((resolve) => {
    client.onConnection(({ kind }) => kind === "connected" && resolve());
  });
  await stage.call(stage.main, "token/rotate", { name: "main" });
  await connected;
  expect(await client.call("session/list", {})).toEqual({ sessions: [] });
  await client.close();
});

test("token secrets appear nowhere: not on disk, in lists, in the log, or in pi", async () => {
  await using stage = await startTokenStage();
  const token = await stage.token({ name: "ci", capabilities: ["observe", "prompt"] });
  await stage.call(token, "session/list");
  await stage.http(token, "GET", "/v1/nothing");
  const file = join(stage.stateDir, "tokens.json");
  expect(statSync(file).mode & 0o777).toBe(0o600);
  const listed = JSON.stringify(await stage.call(stage.main, "token/list"));
  const { pid } = await stage.call(token, "session/create", { cwd: stage.directory("cwd") });
  const withPi = ["cmdline", "environ"].map((name) => processFile(pid, name));
  for (const text of [readFileSync(file, "utf8"), listed, ...withPi, ...stage.logged]) {
    expect(text).not.toContain(token);
    expect(text).not.toContain(stage.main);
  }
});

test("a token in a URL is refused, even with a valid header, and is not logged", async () => {
  await using stage = await startTokenStage();
  const { main } = stage;
  for (const path of [
    `/v1/deliveries?token=${main}`,
    `/v1/deliveries?access_token=${main}`,
    `/v1/deliveries?limit=1&%74oken=x`,
    `/v1/deliveries/${main}`,
    `/v1/deliveries?limit=${main}`,
    `/healthz?token=${main}`,
  ]) {
    const { status, body } = await stage.http(main, "GET", path);
    expect([path, status, body.name]).toEqual([path, 401, "unauthorized"]);
    expect(body.detail).toContain("A token in a URL");
    expect((await stage.http("wrong", "GET", path)).status).toBe(401);
  }
  await expect(stage.webSocket(main, `/v1/ws?token=${main}`)).rejects.toThrow("401");
  expect((await stage.http(main, "GET", "/v1/deliveries?limit=1")).status).toBe(200);
  expect(stage.logged.join("\n")).not.toContain(main);
});

function readMain(stateDir: string): string {
  return JSON.parse(readFileSync(join(stateDir, "daemon.json"), "utf8")).token;
}

/** What the system reports about a process; empty without /proc. */
function processFile(pid: number, name: string): string {
  if (process.platform !== "linux") return "";
  const text = readFileSync(`/proc/${pid}/${name}`, "utf8");
  expect(text).toContain(name === "cmdline" ? "--mode" : "PI_CODING_AGENT_DIR");
  return text;
}
