import { writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { answer, call } from "../../../provider/reply.ts";
import { capabilitiesOf } from "../../../server/pi/capabilities.ts";
import { parseVersion } from "../../../server/pi/version.ts";
import { piUnderTest } from "../../helpers/pi-versions.ts";
import { Scene } from "./scene.ts";

// What a session is started with, and what comes of it.

const { mcpServers: takesServers = false } = capabilitiesOf(parseVersion(piUnderTest().version) ?? [0, 0, 0]);
const program = join(import.meta.dirname, "..", "..", "fixtures", "mcp-server.mjs");
const server = {
  name: "own tools",
  command: process.execPath,
  args: [program],
  env: [{ name: "PLANTED", value: "a secret" }],
};
const abilities = { session: { notices: {} } };

test("MCP servers of an editor are the session's; a pi that cannot take them is named in a notice", async () => {
  await using scene = await Scene.open();
  const editor = await scene.editor({ abilities });
  const { agentCapabilities } = await editor.initialize(abilities);
  expect(agentCapabilities).toMatchObject({ mcpCapabilities: { http: takesServers, sse: false } });
  const sessionId = await editor.create(scene.cwd, { mcpServers: [server] });
  const { mcpServers } = await scene.stage.client.session(sessionId).get();
  expect(mcpServers).toEqual(takesServers ? ["own_tools"] : undefined);
  await editor.until(() => editor.of(sessionId, "available_commands_update").length > 0);
  const notices = editor.of(sessionId, "notice").filter(({ title }) => String(title).includes("MCP"));
  expect(notices).toHaveLength(takesServers ? 0 : 1);
});

test("a session that others follow keeps its MCP servers, with a notice", async () => {
  await using scene = await Scene.open([answer("One.")]);
  const [editor, other] = [await scene.editor({ abilities }), await scene.editor({ abilities })];
  const sessionId = await editor.create(scene.cwd);
  await editor.prompt(sessionId, "Go.");
  await other.call("session/resume", { sessionId, cwd: scene.cwd, mcpServers: [server] });
  await other.until(() => other.of(sessionId, "notice").length > 0);
  expect((await scene.stage.client.session(sessionId).get()).mcpServers).toBeUndefined();
});

test("an editor's environment reaches the session's tools", async () => {
  await using scene = await Scene.open([
    answer(call("bash", { command: 'echo "got $OF_THE_EDITOR"' })),
    answer("Done."),
  ]);
  process.env["OF_THE_EDITOR"] = "it";
  try {
    const editor = await scene.editor();
    const sessionId = await editor.create(scene.cwd);
    await editor.prompt(sessionId, "Go.");
    const last = editor.of(sessionId, "tool_call_update").at(-1);
    expect(last?.["content"]).toMatchObject([{ content: { text: expect.stringContaining("got it") } }]);
  } finally {
    delete process.env["OF_THE_EDITOR"];
  }
});

test("a write shows what the file was before", async () => {
  await using scene = await Scene.open([
    answer(call("write", { path: "a.txt", content: "new" })),
    answer(call("write", { path: "b.txt", content: "first" })),
    answer("Done."),
  ]);
  writeFileSync(join(scene.cwd, "a.txt"), "old");
  const editor = await scene.editor();
  const sessionId = await editor.create(scene.cwd);
  await editor.prompt(sessionId, "Go.");
  const [a, b] = editor.of(sessionId, "tool_call_update").filter(({ status }) => status === "completed");
  expect(a?.["content"]).toEqual([{ type: "diff", path: join(scene.cwd, "a.txt"), oldText: "old", newText: "new" }]);
  expect(b?.["content"]).toMatchObject([{ type: "diff", path: join(scene.cwd, "b.txt"), newText: "first" }]);
});

test("a path in the user's home is absolute, live and in a replay", async () => {
  await using scene = await Scene.open([answer(call("read", { path: "~/not/there.txt" })), answer("Done.")]);
  const editor = await scene.editor();
  const sessionId = await editor.create(scene.cwd);
  await editor.prompt(sessionId, "Go.");
  const locations = [{ path: join(homedir(), "not/there.txt") }];
  expect(editor.of(sessionId, "tool_call_update")).toContainEqual(expect.objectContaining({ locations }));
  await editor.call("session/load", { sessionId, cwd: scene.cwd, mcpServers: [] });
  expect(editor.of(sessionId, "tool_call").at(-1)).toMatchObject({ locations });
});
