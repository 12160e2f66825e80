import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { answer } from "../../../../provider/reply.ts";
import { capabilitiesOf } from "../../../../server/pi/capabilities.ts";
import { parseVersion } from "../../../../server/pi/version.ts";
import { piUnderTest } from "../../../helpers/pi-versions.ts";
import { Editor } from "../editor.ts";
import { SdkClient } from "./client.ts";
import { openScene } from "./scene.ts";

const { mcpServers: takesServers = false } = capabilitiesOf(parseVersion(piUnderTest().version) ?? [0, 0, 0]);
const unknownId = "01a20000-0000-7000-8000-000000000000";

test("the version is the one that a client asks for, and version 2 is had by the option alone", async () => {
  await using scene = await openScene();
  await using older = new Editor({ ...scene.stage, args: ["--v2"] });
  await expect(older.call("initialize", { protocolVersion: 0 })).rejects.toMatchObject({
    code: -32_022,
    data: { requested: 0, supported: [1, 2] },
  });
  const first = await older.call("initialize", { protocolVersion: 1 });
  expect(first).toMatchObject({ protocolVersion: 1, agentInfo: { name: "pi-rpcd" } });
  await expect(older.call("initialize", { protocolVersion: 2 })).rejects.toMatchObject({ code: -32_600 });
  expect(await older.call("authenticate", { methodId: "anything" })).toEqual({});
  await using without = new Editor(scene.stage);
  const info = { name: "test", version: "1" };
  expect(await without.call("initialize", { protocolVersion: 2, info })).toMatchObject({ protocolVersion: 1 });

  await using client = new SdkClient(scene.stage);
  client.write({ jsonrpc: "2.0", id: "early", method: "session/list" });
  client.write({ jsonrpc: "2.0", id: "bare", method: "initialize", params: { protocolVersion: 2 } });
  await client.until(() => client.received.length === 2);
  expect(client.received.map(({ id, error }) => [id, error.code])).toEqual([
    ["early", -32_600],
    ["bare", -32_602],
  ]);
  // What a later version has in another way is left out.
  client.write({ jsonrpc: "2.0", id: "late", method: "initialize", params: { protocolVersion: 3 } });
  await client.until(() => client.received.length === 3);
  expect(client.received[2]).toMatchObject({ id: "late", result: { protocolVersion: 2 } });
  const answered = await client.initialize();
  expect(answered).toMatchObject({
    protocolVersion: 2,
    info: { name: "pi-rpcd" },
    capabilities: { session: { prompt: { image: {}, embeddedContext: {} }, delete: {} } },
    authMethods: [{ type: "agent", methodId: "pi" }],
  });
  expect(answered.capabilities.session.mcp).toEqual(takesServers ? { stdio: {}, http: {} } : undefined);
  const login = await client.initialize({ auth: { terminal: {} } });
  expect(login.authMethods).toMatchObject([{ type: "terminal", methodId: "pi", args: ["--login"] }]);
  await client.call("session/list", {});
  client.write({ jsonrpc: "2.0", id: "again", method: "initialize", params: { protocolVersion: 2, info } });
  client.write({ jsonrpc: "2.0", id: null, method: "session/list" });
  const codeOf = (id: unknown): unknown => client.received.find((each) => each.id === id)?.error?.code;
  await client.until(() => codeOf("again") === -32_600 && codeOf(null) === -32_600);
});

test("what version 2 does not have, or cannot do, is refused", async () => {
  await using scene = await openScene();
  const client = await scene.client();
  const sessionId = await client.create(scene.cwd);
  for (const method of ["session/load", "session/set_mode", "authenticate", "constructor", "_other/thing"])
    await expect(client.call(method, { sessionId }), method).rejects.toMatchObject({ code: -32_601 });
  const resume = { sessionId, cwd: scene.cwd };
  const refused: readonly (readonly [string, object])[] = [
    ["session/new", { cwd: "relative" }],
    ["session/new", { cwd: scene.cwd, mcpServers: [{ type: "sse", name: "x", url: "http://localhost" }] }],
    ["session/resume", { ...resume, cwd: "/" }],
    ["session/resume", { ...resume, replayFrom: { type: "_middle" } }],
    ["session/prompt", { sessionId, prompt: [{ type: "audio", data: "AAAA", mimeType: "audio/wav" }] }],
    ["session/prompt", { sessionId, prompt: [] }],
    ["session/set_config_option", { sessionId, configId: "colour", type: "id", value: "red" }],
    ["session/set_config_option", { sessionId, configId: "model", type: "id", value: "no/such" }],
    ["session/set_config_option", { sessionId, configId: "thought_level", type: "boolean", value: true }],
    ["tool_call/cancel", { sessionId, toolCallId: "t" }],
    ["terminal/cancel", { sessionId, terminalId: "t" }],
    ["auth/login", { methodId: "another" }],
  ];
  for (const [method, params] of refused)
    await expect(client.call(method, params as never), JSON.stringify(params)).rejects.toMatchObject({ code: -32_602 });
  const missing = { sessionId: unknownId, cwd: scene.cwd };
  await expect(client.call("session/resume", missing)).rejects.toMatchObject({
    code: -32_002,
    data: { sessionId: unknownId, name: "session_not_found" },
  });
  await expect(client.prompt(unknownId, "Go.")).rejects.toMatchObject({
    code: -32_002,
    data: { sessionId: unknownId },
  });
});

test("sessions are listed, closed and deleted, and the daemon's own methods are reached", async () => {
  await using scene = await openScene([answer("One.")]);
  const client = await scene.client();
  const sessionId = await client.create(scene.cwd);
  await client.run(sessionId, "A first prompt.");
  const other = join(scene.cwd, "other");
  mkdirSync(other);
  expect(await client.call("session/list", { cwd: other })).toEqual({ sessions: [] });
  const { sessions } = await client.call("session/list", { cwd: scene.cwd });
  expect(sessions).toMatchObject([{ sessionId, cwd: scene.cwd, title: "A first prompt." }]);
  expect(await client.call("_pi-rpcd/session/get", { sessionId })).toMatchObject({ state: "idle" });
  expect(await client.call("session/close", { sessionId })).toEqual({});
  // As the schema wants it: a session that is closed already is closed.
  client.write({ jsonrpc: "2.0", id: "closed", method: "session/close", params: { sessionId } });
  await client.until(() => client.received.some(({ id }) => id === "closed"));
  expect(client.received.find(({ id }) => id === "closed").result).toEqual({});
  await expect(client.prompt(sessionId, "Go.")).rejects.toMatchObject({ code: -32_002 });
  expect(await client.call("session/delete", { sessionId })).toEqual({});
  expect(await client.call("session/delete", { sessionId })).toEqual({});
  expect(await client.call("session/list", {})).toEqual({ sessions: [] });
});

test("the model and the thinking level are config options, and every other client is told", async () => {
  await using scene = await openScene();
  const [client, other] = [await scene.client(), await scene.client()];
  const { sessionId, configOptions } = await client.call("session/new", { cwd: scene.cwd });
  expect(configOptions).toMatchObject([
    { configId: "model", type: "select", currentValue: "scripted/model-1" },
    { configId: "thought_level", currentValue: "off" },
  ]);
  const attached = await other.call("session/resume", { sessionId, cwd: scene.cwd });
  expect(attached.configOptions).toEqual(configOptions);
  const value = "scripted-anthropic/model-1";
  const set = await client.call("session/set_config_option", { sessionId, configId: "model", type: "id", value });
  expect(set).toMatchObject({ configOptions: [{ configId: "model", currentValue: value }, {}] });
  await other.until(() => other.of(sessionId, "config_option_update").length > 0);
  expect(other.of(sessionId, "config_option_update").at(-1)).toMatchObject(set);
  await client.until(() => client.of(sessionId, "available_commands_update").length > 0);
  expect(client.of(sessionId, "available_commands_update")[0].availableCommands).toEqual(
    expect.arrayContaining([
      expect.objectContaining({ type: "command", name: "ask" }),
      expect.objectContaining({ type: "command", name: "compact", input: { type: "text", hint: "what to keep" } }),
    ]),
  );
});

test("a client logs out of its connection, until it logs in again", async () => {
  await using scene = await openScene();
  const [client, other] = [await scene.client(), await scene.client()];
  expect(await client.call("auth/logout", {})).toEqual({});
  await expect(client.create(scene.cwd)).rejects.toMatchObject({ code: -32_000 });
  await other.create(scene.cwd);
  expect(await client.call("auth/login", { methodId: "pi" })).toEqual({});
  await client.create(scene.cwd);
});

test("MCP servers of a client are the session's; a pi that cannot take them does not offer it", async () => {
  await using scene = await openScene();
  const client = await scene.client();
  const program = join(import.meta.dirname, "..", "..", "..", "fixtures", "mcp-server.mjs");
  const mcpServers = [{ type: "stdio", name: "own tools", command: process.execPath, args: [program] }];
  const created = client.create(scene.cwd, { mcpServers });
  if (takesServers) {
    const session = scene.stage.client.session(await created);
    expect((await session.get()).mcpServers).toEqual(["own_tools"]);
  } else await expect(created).rejects.toMatchObject({ code: -32_602, data: { type: "stdio" } });
});
