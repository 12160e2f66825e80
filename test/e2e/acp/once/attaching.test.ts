import { expect, test } from "vitest";
import { Gate } from "../../../../provider/gate.ts";
import { answer, call, hold } from "../../../../provider/reply.ts";
import { patience } from "../../../helpers/patience.ts";
import type { Json } from "../editor.ts";
import { Scene } from "../scene.ts";

test("a second session leaves the run of the first alone", async () => {
  const gate = new Gate();
  await using scene = await Scene.open([answer("I thi", hold(gate), "nk."), answer("The second.")]);
  const editor = await scene.editor();
  const first = await editor.create(scene.cwd);
  const run = editor.prompt(first, "Think.");
  await editor.until(() => editor.text(first) === "I thi");
  const second = await editor.create(scene.cwd);
  expect(await editor.prompt(second, "Go.")).toMatchObject({ stopReason: "end_turn" });
  gate.open();
  expect(await run).toMatchObject({ stopReason: "end_turn" });
  expect([editor.text(first), editor.text(second)]).toEqual(["I think.", "The second."]);
});

test("a run goes on when its editor ends, and another editor loads all of it", async () => {
  const gate = new Gate();
  await using scene = await Scene.open([
    answer("I look. ", call("bash", { command: "echo hello" })),
    answer("I thi", hold(gate), "nk."),
  ]);
  const editor = await scene.editor();
  const sessionId = await editor.create(scene.cwd);
  editor.prompt(sessionId, "Think.").catch(() => {});
  await editor.until(() => editor.text(sessionId).endsWith("I thi"));
  expect(await editor.end()).toBe(0);
  const other = await scene.editor();
  const loaded = await other.call("session/load", { sessionId, cwd: scene.cwd, mcpServers: [] });
  expect(loaded).toMatchObject({ configOptions: [{ id: "model" }, { id: "thought_level" }], modes: {}, models: {} });
  expect(other.text(sessionId, "user_message_chunk")).toBe("Think.");
  await other.until(() => other.text(sessionId).endsWith("I thi"));
  gate.open();
  await other.until(() => other.text(sessionId).endsWith("nk."));
  expect(other.text(sessionId)).toBe("I look. I think.");
  expect(other.of(sessionId, "tool_call")).toMatchObject([{ status: "completed", title: "echo hello" }]);
});

test("a session is loaded again on the same connection, and by an editor that resumes it without its history", async () => {
  await using scene = await Scene.open([answer("One."), answer("Two.")]);
  const editor = await scene.editor();
  const sessionId = await editor.create(scene.cwd);
  await editor.prompt(sessionId, "First.");
  const params = { sessionId, cwd: scene.cwd, mcpServers: [] };
  await editor.call("session/load", params);
  expect(editor.text(sessionId)).toBe("One.One.");
  const other = await scene.editor();
  await other.call("session/resume", params);
  expect(await other.prompt(sessionId, "Second.")).toMatchObject({ stopReason: "end_turn" });
  expect(other.text(sessionId)).toBe("Two.");
  await editor.until(() => editor.text(sessionId).endsWith("Two."));
  expect(editor.text(sessionId)).toBe("One.One.Two.");
  expect(editor.of(sessionId, "user_message_chunk").at(-1)).toMatchObject({ content: { text: "Second." } });
});

test("closing ends only the client's own run, and its prompt is cancelled", async () => {
  const gate = new Gate();
  await using scene = await Scene.open([answer("I thi", hold(gate), "nk."), answer("Mi", hold(gate), "ne.")]);
  const [editor, other] = [await scene.editor(), await scene.editor()];
  const sessionId = await editor.create(scene.cwd);
  const params = { sessionId, cwd: scene.cwd };
  await other.call("session/resume", params);
  const run = editor.prompt(sessionId, "Think.");
  await editor.until(() => editor.text(sessionId) === "I thi");
  // Another one's run goes on.
  await other.call("session/close", { sessionId });
  const session = scene.stage.client.session(sessionId);
  expect(await session.get()).toMatchObject({ state: "running" });
  await expect(other.prompt(sessionId, "Go.")).rejects.toMatchObject({ code: -32_002 });
  await other.call("session/resume", params);
  expect(await editor.call("session/close", { sessionId })).toEqual({});
  expect(await run).toMatchObject({ stopReason: "cancelled" });
  await session.waitForIdle();
  expect(await session.get()).toMatchObject({ state: "idle" });
});

test("closing takes back a prompt that waits in another one's run", async () => {
  const gate = new Gate();
  await using scene = await Scene.open([answer("I thi", hold(gate), "nk.")]);
  const [editor, other] = [await scene.editor(), await scene.editor()];
  const sessionId = await editor.create(scene.cwd);
  await other.call("session/resume", { sessionId, cwd: scene.cwd });
  const run = editor.prompt(sessionId, "Think.");
  await editor.until(() => editor.text(sessionId) === "I thi");
  const steered = other.prompt(sessionId, "And this.");
  const session = scene.stage.client.session(sessionId);
  await expect.poll(async () => (await session.getQueue()).steering.length, patience).toBe(1);
  await other.call("session/close", { sessionId });
  expect(await steered).toMatchObject({ stopReason: "cancelled" });
  expect((await session.getQueue()).steering).toEqual([]);
  gate.open();
  expect(await run).toMatchObject({ stopReason: "end_turn" });
  expect(editor.text(sessionId)).toBe("I think.");
});

test("a session that somebody closes in a run is an error of its prompt", async () => {
  const gate = new Gate();
  await using scene = await Scene.open([answer("I thi", hold(gate), "nk.")]);
  const editor = await scene.editor();
  const sessionId = await editor.create(scene.cwd);
  const run = editor.prompt(sessionId, "Think.").catch((error: unknown) => error);
  await editor.until(() => editor.text(sessionId) === "I thi");
  await scene.stage.client.session(sessionId).close();
  expect(await run).toMatchObject({ code: -32_603 });
});

test("a session without a message is closed with its editor, one with a message stays", async () => {
  await using scene = await Scene.open([answer("One.")]);
  const editor = await scene.editor();
  const [empty, used] = [await editor.create(scene.cwd), await editor.create(scene.cwd)];
  await editor.prompt(used, "Go.");
  await editor.end();
  const { client } = scene.stage;
  await expect
    .poll(async () => (await client.listSessions()).map(({ sessionId }) => sessionId), patience)
    .toEqual([used]);
  expect(empty).not.toBe(used);
});

test("with --on-detach abort a run ends with its editor", async () => {
  const gate = new Gate();
  await using scene = await Scene.open([answer("I thi", hold(gate), "nk.")]);
  const editor = await scene.editor({ args: ["--on-detach", "abort"] });
  const sessionId = await editor.create(scene.cwd);
  editor.prompt(sessionId, "Think.").catch(() => {});
  await editor.until(() => editor.text(sessionId) === "I thi");
  await editor.end();
  expect(await scene.stage.client.session(sessionId).get()).toMatchObject({ state: "idle" });
});

test("a signal ends the editor's agent, and its run goes on", async () => {
  const gate = new Gate();
  await using scene = await Scene.open([answer("I thi", hold(gate), "nk.")]);
  const editor = await scene.editor();
  const sessionId = await editor.create(scene.cwd);
  editor.prompt(sessionId, "Think.").catch(() => {});
  await editor.until(() => editor.text(sessionId) === "I thi");
  expect(await editor.kill("SIGTERM")).toBe(143);
  gate.open();
  const session = scene.stage.client.session(sessionId);
  await session.waitForIdle();
  expect(await scene.stage.client.call("session/getLastText", { sessionId })).toMatchObject({ text: "I think." });
});

test("with --on-detach abort a run ends when its editor stops reading", async () => {
  const gate = new Gate();
  await using scene = await Scene.open([answer("I thi", hold(gate), "nk.", call("bash", { command: "sleep 600" }))]);
  const editor = await scene.editor({ args: ["--on-detach", "abort"] });
  const sessionId = await editor.create(scene.cwd);
  editor.prompt(sessionId, "Think.").catch(() => {});
  await editor.until(() => editor.text(sessionId) === "I thi");
  const end = editor.stopReading();
  gate.open();
  await end;
  expect(await scene.stage.client.session(sessionId).get()).toMatchObject({ state: "idle" });
});

test("what others say in the session is shown with its sender, once, and a replay names the senders too", async () => {
  await using scene = await Scene.open([answer("To the other."), answer("To the push."), answer("To the editor.")]);
  const editor = await scene.editor();
  const sessionId = await editor.create(scene.cwd);
  const { client } = scene.stage;
  const session = client.session(sessionId);
  await session.promptAndWait("From the other.");
  const push = session.push({ customType: "note", content: "Pushed." });
  await push.answered;
  await editor.until(() => editor.text(sessionId) === "To the other.To the push.");
  const by = { clientId: client.id };
  const others = [
    { content: { text: "From the other." }, _meta: { "pi-rpcd": { by } } },
    { content: { text: "Pushed." }, _meta: { "pi-rpcd": { by, customType: "note" } } },
  ];
  expect(editor.of(sessionId, "user_message_chunk")).toMatchObject(others);
  await editor.prompt(sessionId, "From the editor.");
  expect(editor.of(sessionId, "user_message_chunk")).toHaveLength(2);
  const loader = await scene.editor();
  await loader.call("session/load", { sessionId, cwd: scene.cwd, mcpServers: [] });
  expect(loader.of(sessionId, "user_message_chunk")).toMatchObject([
    ...others,
    { content: { text: "From the editor." }, _meta: { "pi-rpcd": { by: { name: "ACP client" } } } },
  ]);
});

test("a daemon that is started again leaves the editor its session", async () => {
  await using scene = await Scene.open([answer("Before."), answer("After.")]);
  const editor = await scene.editor();
  const sessionId = await editor.create(scene.cwd);
  await editor.prompt(sessionId, "First.");
  await scene.stage.restart();
  expect(await editor.prompt(sessionId, "Second.")).toMatchObject({ stopReason: "end_turn" });
  expect(editor.text(sessionId)).toBe("Before.After.");
});

test("requests to load, resume and close one session are answered in their order", async () => {
  await using scene = await Scene.open([answer("One."), answer("Two.")]);
  const editor = await scene.editor();
  const sessionId = await editor.create(scene.cwd);
  await editor.prompt(sessionId, "First.");
  const params = { sessionId, cwd: scene.cwd, mcpServers: [] };
  const methods = ["session/load", "session/load", "session/resume"];
  const answers = await Promise.all(methods.map((method) => editor.call(method, params)));
  expect(answers).toMatchObject(methods.map(() => ({ configOptions: [{}, {}] })));
  expect(await editor.prompt(sessionId, "Second.")).toMatchObject({ stopReason: "end_turn" });
  expect(editor.text(sessionId)).toBe("One.One.One.Two.");
  const load = editor.call("session/load", params);
  expect(await editor.call("session/close", { sessionId })).toEqual({});
  expect(await load).toMatchObject({ configOptions: [{}, {}] });
});

test("a prompt waits for its run when its session is loaded meanwhile", async () => {
  const gate = new Gate();
  await using scene = await Scene.open([answer("I thi", hold(gate), "nk.")]);
  const editor = await scene.editor();
  const sessionId = await editor.create(scene.cwd);
  const prompt = editor.prompt(sessionId, "Think.");
  await editor.until(() => editor.text(sessionId) === "I thi");
  await editor.call("session/load", { sessionId, cwd: scene.cwd, mcpServers: [] });
  gate.open();
  expect(await prompt).toMatchObject({ stopReason: "end_turn" });
  expect(editor.text(sessionId)).toBe("I thiI think.");
});

test("a loaded or resumed session keeps its name, and its cost goes on", async () => {
  await using scene = await Scene.open([answer("One."), answer("Two.")]);
  const [editor, loading, resuming] = [await scene.editor(), await scene.editor(), await scene.editor()];
  const sessionId = await editor.create(scene.cwd);
  await editor.prompt(sessionId, "First.");
  await editor.prompt(sessionId, "/name The name");
  const params = { sessionId, cwd: scene.cwd, mcpServers: [] };
  await loading.call("session/load", params);
  expect(loading.of(sessionId, "usage_update")).toEqual(editor.of(sessionId, "usage_update"));
  await resuming.call("session/resume", params);
  await resuming.prompt(sessionId, "Second.");
  const titles = resuming.of(sessionId, "session_info_update").map(({ title }) => title);
  expect(titles).not.toContain("Second.");
  await editor.until(() => editor.of(sessionId, "usage_update").length === 2);
  const [one, other] = [editor, resuming].map((each) => each.of(sessionId, "usage_update").at(-1)?.["cost"]);
  expect((other as Json)["amount"]).toBeCloseTo(Number((one as Json)["amount"]), 9);
});
