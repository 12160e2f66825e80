import { once } from "node:events";
import { mkdirSync, realpathSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { readDaemonFile } from "../../../../client/index.ts";
import type { Params } from "../../../../protocol/methods.ts";
import { ACP_PATH, ACP_SUBPROTOCOL, TOKEN_SUBPROTOCOL_PREFIX } from "../../../../protocol/wire.ts";
import { Gate } from "../../../../provider/gate.ts";
import { answer, call, hold } from "../../../../provider/reply.ts";
import { fallAsleep } from "../../../helpers/asleep.ts";
import type { Unchecked } from "../../../helpers/unchecked.ts";
import { type Opening, openAcp } from "../connection.ts";
import type { Editor, EditorOptions, Json } from "../editor.ts";
import { Scene } from "../scene.ts";

async function editorOf(scene: Scene, opening?: Opening, options: Partial<EditorOptions> = {}): Promise<Editor> {
  return await scene.editor({ ...options, socket: (await openAcp(scene.stage, opening)).socket });
}

async function tokenOf(scene: Scene, params: Params<"token/create">): Promise<string> {
  return (await scene.stage.client.call("token/create", params)).token;
}

const yes = (): Json => ({ outcome: { outcome: "selected", optionId: "0" } });

test.each([{ over: "TCP" }, { over: "the Unix socket", unix: true }])(
  "a prompt with a tool, its question and a reload work over $over",
  async ({ unix = false }) => {
    await using scene = await Scene.open([
      answer("I look. ", call("bash", { command: "echo ask-first" })),
      answer("Done."),
    ]);
    const { socket, headers } = await openAcp(scene.stage, { unix });
    expect(headers["acp-connection-id"]).toMatch(/^[0-9a-f-]{36}$/);
    const editor = await scene.editor({ socket, answer: yes });
    const sessionId = await editor.create(scene.cwd);
    expect(await editor.prompt(sessionId, "Go.")).toMatchObject({ stopReason: "end_turn" });
    expect(editor.text(sessionId)).toBe("I look. Done.");
    expect(editor.asked).toMatchObject([{ method: "session/request_permission", params: { sessionId } }]);
    expect(editor.of(sessionId, "tool_call_update").at(-1)).toMatchObject({ status: "completed" });
    const other = await editorOf(scene, { unix });
    await other.call("session/load", { sessionId, cwd: scene.cwd, mcpServers: [] });
    expect(other.text(sessionId)).toBe("I look. Done.");
    expect(other.of(sessionId, "tool_call")).toMatchObject([{ status: "completed", title: "echo ask-first" }]);
  },
);

test("a run goes on without its connection, is loaded again in its middle, and is cancelled there", async () => {
  const gate = new Gate();
  await using scene = await Scene.open([
    answer("I look. ", call("bash", { command: "echo hello" })),
    answer("I thi", hold(gate), "nk."),
    answer("Never", hold(new Gate())),
  ]);
  const editor = await editorOf(scene);
  const sessionId = await editor.create(scene.cwd);
  editor.prompt(sessionId, "Think.").catch(() => {});
  await editor.until(() => editor.text(sessionId).endsWith("I thi"));
  await editor.kill();
  const other = await editorOf(scene);
  await other.call("session/load", { sessionId, cwd: scene.cwd, mcpServers: [] });
  await other.until(() => other.text(sessionId).endsWith("I thi"));
  gate.open();
  await other.until(() => other.text(sessionId).endsWith("nk."));
  expect(other.text(sessionId)).toBe("I look. I think.");
  await expect.poll(async () => (await scene.stage.client.session(sessionId).get()).state).toBe("idle");
  const prompt = other.prompt(sessionId, "Again.");
  await other.until(() => other.text(sessionId).endsWith("Never"));
  other.notify("session/cancel", { sessionId });
  expect(await prompt).toMatchObject({ stopReason: "cancelled" });
});

test("the token is in the header or in a subprotocol, and Host and Origin are checked as for other WebSockets", async () => {
  await using scene = await Scene.open();
  const { token } = await readDaemonFile(scene.stage.stateDir);
  const inSubprotocol = [ACP_SUBPROTOCOL, `${TOKEN_SUBPROTOCOL_PREFIX}${token}`];
  const { socket } = await openAcp(scene.stage, { token: null, protocols: inSubprotocol });
  expect(socket.protocol).toBe(ACP_SUBPROTOCOL);
  socket.terminate();
  await expect(openAcp(scene.stage, { token: null })).rejects.toThrow("401");
  await expect(openAcp(scene.stage, { token: "wrong" })).rejects.toThrow("401");
  await expect(openAcp(scene.stage, { headers: { origin: "https://example.org" } })).rejects.toThrow("403");
  await expect(openAcp(scene.stage, { headers: { host: "example.org" } })).rejects.toThrow("403");
});

test.each([
  { method: "GET", status: 426 },
  { method: "POST", status: 426 },
  { method: "PUT", status: 405 },
])("$method without an upgrade is $status", async ({ method, status }) => {
  await using scene = await Scene.open();
  const { url, token } = await readDaemonFile(scene.stage.stateDir);
  const body = method === "GET" ? {} : { body: "{" };
  const authorization = `Bearer ${token}`;
  const response = await fetch(`${url}${ACP_PATH}`, { method, headers: { authorization }, ...body });
  expect([response.status, await response.json()]).toMatchObject([status, { status }]);
});

test("binary messages are ignored; batches and what is not JSON are refused; a message above the limit closes", async () => {
  await using scene = await Scene.open();
  const { socket } = await openAcp(scene.stage);
  const editor = await scene.editor({ socket });
  socket.send(Buffer.from(JSON.stringify({ jsonrpc: "2.0", id: 77, method: "session/list", params: {} })));
  editor.write("[]");
  editor.write("{");
  editor.write(`${"[".repeat(200)}${"]".repeat(200)}`);
  editor.write(`{"jsonrpc":"2.0","id":1,"method":"session/list","params":{"__proto__":{}}}`);
  await editor.call("session/list", {});
  expect(editor.strays.map(({ error }) => (error as Json)["code"])).toEqual([-32_600, -32_700, -32_600, -32_600]);
  socket.send("x".repeat(16 * 1024 * 1024 + 1));
  expect((await once(socket, "close"))[0]).toBe(1009);
});

test("a token that may only read lists and loads sessions, follows their runs, and gets named errors for the rest", async () => {
  const gate = new Gate();
  await using scene = await Scene.open([
    answer("I look. ", call("bash", { command: "echo ask-first" })),
    answer("Do", hold(gate), "ne."),
  ]);
  const writer = await editorOf(scene, {}, { answer: yes });
  const sessionId = await writer.create(scene.cwd);
  const token = await tokenOf(scene, { name: "reader", capabilities: ["observe"] });
  const asked: string[] = [];
  const reader = await editorOf(scene, { token }, { answer: (method) => void asked.push(method) });
  const { sessions } = await reader.call("session/list", {});
  expect(sessions).toMatchObject([{ sessionId }]);
  await reader.call("session/load", { sessionId, cwd: scene.cwd, mcpServers: [] });
  const lacks = { code: -32_603, data: { name: "forbidden", needs: "prompt" } };
  await expect(reader.create(scene.cwd)).rejects.toMatchObject(lacks);
  await expect(reader.prompt(sessionId, "Go.")).rejects.toMatchObject(lacks);
  const run = writer.prompt(sessionId, "Go.");
  await reader.until(() => reader.text(sessionId).endsWith("Do"));
  gate.open();
  await run;
  await reader.until(() => reader.text(sessionId).endsWith("ne."));
  expect(reader.text(sessionId)).toBe("I look. Done.");
  // Its own prompt of the same words was refused, so these are the other's.
  expect(reader.text(sessionId, "user_message_chunk")).toBe("Go.");
  expect(asked).toEqual([]);
  // A session without a pi, which a reader cannot start.
  await writer.kill();
  await fallAsleep(scene.stage.client, sessionId);
  const later = await editorOf(scene, { token });
  await later.call("session/load", { sessionId, cwd: scene.cwd, mcpServers: [] });
  expect(later.text(sessionId)).toBe("I look. Done.");
  expect(await later.call("session/close", { sessionId })).toEqual({});
  // The agent names the methods that this token allows, and these work.
  const { agentCapabilities } = await later.initialize();
  const { methods } = (agentCapabilities as Unchecked)._meta["pi-rpcd"];
  expect(methods).toEqual(expect.arrayContaining(["session/get", "prompt/list"]));
  for (const method of ["session/prompt", "delivery/push", "token/create"]) expect(methods).not.toContain(method);
  expect(await later.call("_pi-rpcd/session/get", { sessionId })).toMatchObject({ sessionId });
});

test("a token with limits sees its sessions only", async () => {
  await using scene = await Scene.open([answer("Mine.")]);
  const [inside, outside] = ["inside", "outside"].map((name) => join(realpathSync(scene.cwd), name));
  for (const directory of [inside, outside]) mkdirSync(directory as string);
  const main = await editorOf(scene);
  const hidden = await main.create(outside as string);
  const token = await tokenOf(scene, {
    name: "limited",
    capabilities: ["prompt", "observe"],
    cwds: [inside as string],
  });
  const editor = await editorOf(scene, { token });
  await expect(editor.create(outside as string)).rejects.toMatchObject({ data: { name: "forbidden", limit: "cwd" } });
  const sessionId = await editor.create(inside as string);
  expect(await editor.prompt(sessionId, "Go.")).toMatchObject({ stopReason: "end_turn" });
  expect((await editor.call("session/list", {}))["sessions"]).toMatchObject([{ sessionId }]);
  for (const method of ["session/load", "session/resume"]) {
    const params = { sessionId: hidden, cwd: outside, mcpServers: [] };
    await expect(editor.call(method, params)).rejects.toMatchObject({ code: -32_002 });
  }
  await expect(editor.call("_pi-rpcd/session/get", { sessionId: hidden })).rejects.toMatchObject({ code: -32_002 });
  const labelled = await tokenOf(scene, {
    name: "labelled",
    capabilities: ["prompt", "observe"],
    labels: { team: "a" },
  });
  const other = await editorOf(scene, { token: labelled });
  const own = await other.create(outside as string);
  expect((await other.call("session/list", {}))["sessions"]).toMatchObject([{ sessionId: own }]);
});

test("an editor that stops reading 50 MiB of an answer stays connected, gets all of it when it reads again, and loads it", async () => {
  const piece = "0123456789abcdef".repeat(4_096);
  // On a loaded machine the run takes longer than a reader may usually stop.
  const edgeLimits = { slowReaderDeadlineMs: 600_000, pingIntervalMs: 600_000 };
  await using scene = await Scene.open([answer(...Array<string>(800).fill(piece))], { edgeLimits });
  const { socket } = await openAcp(scene.stage);
  const editor = await scene.editor({ socket });
  const sessionId = await editor.create(scene.cwd);
  const prompt = editor.prompt(sessionId, "Go.");
  await editor.until(() => editor.text(sessionId) !== "");
  socket.pause();
  await expect.poll(async () => (await scene.stage.client.session(sessionId).get()).state).toBe("idle");
  socket.resume();
  expect(await prompt).toMatchObject({ stopReason: "end_turn" });
  const before = editor.text(sessionId).length;
  expect(editor.text(sessionId) === piece.repeat(800)).toBe(true);
  await editor.call("session/load", { sessionId, cwd: scene.cwd, mcpServers: [] });
  expect(editor.text(sessionId).slice(before) === piece.repeat(800)).toBe(true);
});

test("the end of its token closes the connection with 4401, and the run goes on", async () => {
  const gate = new Gate();
  await using scene = await Scene.open([answer("I thi", hold(gate), "nk.")]);
  const token = await tokenOf(scene, { name: "editor", capabilities: ["prompt", "observe"] });
  const { socket } = await openAcp(scene.stage, { token });
  const editor = await scene.editor({ socket });
  const sessionId = await editor.create(scene.cwd);
  editor.prompt(sessionId, "Think.").catch(() => {});
  await editor.until(() => editor.text(sessionId) === "I thi");
  const closed = once(socket, "close");
  await scene.stage.client.call("token/revoke", { name: "editor" });
  expect((await closed)[0]).toBe(4401);
  gate.open();
  await expect.poll(async () => (await scene.stage.client.session(sessionId).get()).state).toBe("idle");
  const other = await editorOf(scene);
  await other.call("session/load", { sessionId, cwd: scene.cwd, mcpServers: [] });
  expect(other.text(sessionId)).toBe("I think.");
});

test("the daemon's end closes the connection with 1001, and a session is loaded from the next daemon", async () => {
  await using scene = await Scene.open([answer("First."), answer("Second.")]);
  const { socket } = await openAcp(scene.stage);
  const editor = await scene.editor({ socket });
  const sessionId = await editor.create(scene.cwd);
  await editor.prompt(sessionId, "Go.");
  const closed = once(socket, "close");
  await scene.stage.restart();
  expect((await closed)[0]).toBe(1001);
  const other = await editorOf(scene);
  await other.call("session/load", { sessionId, cwd: scene.cwd, mcpServers: [] });
  expect(await other.prompt(sessionId, "Again.")).toMatchObject({ stopReason: "end_turn" });
  expect(other.text(sessionId)).toBe("First.Second.");
});

test("a write shows what the file was before, as over stdin and stdout", async () => {
  await using scene = await Scene.open([answer(call("write", { path: "a.txt", content: "new" })), answer("Done.")]);
  writeFileSync(join(scene.cwd, "a.txt"), "old");
  const { socket } = await openAcp(scene.stage);
  const editor = await scene.editor({ socket });
  const sessionId = await editor.create(scene.cwd);
  await editor.prompt(sessionId, "Go.");
  const last = editor.of(sessionId, "tool_call_update").at(-1);
  expect(last?.["content"]).toMatchObject([{ type: "diff", oldText: "old", newText: "new" }]);
});
