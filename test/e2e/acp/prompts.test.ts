import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { expect, test } from "vitest";
import { Gate } from "../../../provider/gate.ts";
import { answer, call, hold, status } from "../../../provider/reply.ts";
import { patience } from "../../helpers/patience.ts";
import type { Editor, Json } from "./editor.ts";
import { Scene } from "./scene.ts";

test("a prompt with tools is answered after all of its updates", async () => {
  await using scene = await Scene.open([
    answer("I look. ", call("bash", { command: "echo hello" })),
    answer(call("edit", { path: "a.txt", edits: [{ oldText: "one", newText: "two" }] })),
    answer("Done."),
  ]);
  writeFileSync(join(scene.cwd, "a.txt"), "one\n");
  const editor = await scene.editor();
  const sessionId = await editor.create(scene.cwd);
  const { stopReason, _meta } = await editor.prompt(sessionId, "Go.");
  expect(stopReason).toBe("end_turn");
  const { tokens, cost } = await scene.stage.client.call("session/getStats", { sessionId });
  const { input, output } = tokens;
  expect(_meta).toMatchObject({ "pi-rpcd": { usage: { input, output }, cost: expect.closeTo(cost, 9) } });
  expect(editor.text(sessionId)).toBe("I look. Done.");
  const tools = editor.of(sessionId, "tool_call_update").filter(({ status: state }) => state === "completed");
  expect(tools).toHaveLength(2);
  expect(tools[1]).toMatchObject({
    content: [{ type: "diff", path: join(scene.cwd, "a.txt"), oldText: "one", newText: "two" }],
  });
  expect(editor.of(sessionId, "user_message_chunk")).toEqual([]);
  expect(editor.of(sessionId, "usage_update")).not.toEqual([]);
});

test.each([
  { what: "a refused request", reply: status(400), code: -32_603, message: /400/ },
  { what: "a refused key", reply: status(401), code: -32_000, message: /401/ },
])("$what is the prompt's error, with the provider's words", async ({ reply, ...error }) => {
  await using scene = await Scene.open([reply]);
  const editor = await scene.editor();
  const sessionId = await editor.create(scene.cwd);
  await expect(editor.prompt(sessionId, "Go.")).rejects.toMatchObject({
    code: error.code,
    message: expect.stringMatching(error.message),
  });
});

test("an answer that was cut off by its length is max_tokens", async () => {
  await using scene = await Scene.open([{ ...answer("Half an ans"), stop: "length" }]);
  const editor = await scene.editor();
  const sessionId = await editor.create(scene.cwd);
  expect(await editor.prompt(sessionId, "Go.")).toMatchObject({ stopReason: "max_tokens" });
});

test.each(["session/cancel", "$/cancel_request"])("%s ends the run, and the prompt is cancelled", async (method) => {
  const gate = new Gate();
  await using scene = await Scene.open([answer("I thi", hold(gate), "nk.")]);
  const editor = await scene.editor();
  const sessionId = await editor.create(scene.cwd);
  const prompt = editor.prompt(sessionId, "Think.");
  await editor.until(() => editor.text(sessionId) === "I thi");
  editor.notify(method, method === "session/cancel" ? { sessionId } : { requestId: editor.newest });
  expect(await prompt).toMatchObject({ stopReason: "cancelled" });
});

test("a tool that was running when its run is cancelled has failed before the prompt's answer", async () => {
  await using scene = await Scene.open([answer(call("bash", { command: "sleep 600" }))]);
  const editor = await scene.editor();
  const sessionId = await editor.create(scene.cwd);
  const prompt = editor.prompt(sessionId, "Wait.");
  await editor.untilToolRuns(sessionId);
  editor.notify("session/cancel", { sessionId });
  expect(await prompt).toMatchObject({ stopReason: "cancelled" });
  expect(editor.of(sessionId, "tool_call_update").at(-1)).toMatchObject({ status: "failed" });
});

test("a prompt during a run is steered into it, and answered with it", async () => {
  const gate = new Gate();
  await using scene = await Scene.open([
    answer("I thi", hold(gate), "nk.", call("bash", { command: "echo" })),
    answer("Both."),
  ]);
  const editor = await scene.editor();
  const sessionId = await editor.create(scene.cwd);
  const first = editor.prompt(sessionId, "Think.");
  await editor.until(() => editor.text(sessionId) === "I thi");
  const second = editor.prompt(sessionId, "And this.");
  const { client } = scene.stage;
  await expect.poll(async () => (await client.session(sessionId).getQueue()).steering.length).toBe(1);
  gate.open();
  expect(await Promise.all([first, second])).toMatchObject([{ stopReason: "end_turn" }, { stopReason: "end_turn" }]);
  expect(scene.stage.provider.requests).toHaveLength(2);
  expect(editor.of(sessionId, "user_message_chunk")).toEqual([]);
});

test("a queued prompt of a cancelled run is cancelled too", async () => {
  const gate = new Gate();
  await using scene = await Scene.open([answer("I thi", hold(gate), "nk.")]);
  const editor = await scene.editor();
  const sessionId = await editor.create(scene.cwd);
  const first = editor.prompt(sessionId, "Think.");
  await editor.until(() => editor.text(sessionId) === "I thi");
  const second = editor.prompt(sessionId, "And this.");
  const { client } = scene.stage;
  await expect.poll(async () => (await client.session(sessionId).getQueue()).steering.length).toBe(1);
  editor.notify("session/cancel", { sessionId });
  expect(await Promise.all([first, second])).toMatchObject([{ stopReason: "cancelled" }, { stopReason: "cancelled" }]);
  expect(scene.stage.provider.requests).toHaveLength(1);
});

test("a command of an extension ends its turn, and its words are shown", async () => {
  await using scene = await Scene.open();
  const editor = await scene.editor();
  const sessionId = await editor.create(scene.cwd);
  await editor.until(() => editor.of(sessionId, "available_commands_update").length > 0);
  const names = editor.of(sessionId, "available_commands_update")[0]?.["availableCommands"];
  expect(names).toEqual(
    expect.arrayContaining([expect.objectContaining({ name: "ask" }), expect.objectContaining({ name: "compact" })]),
  );
  expect(await editor.prompt(sessionId, "/ask []")).toMatchObject({ stopReason: "end_turn" });
  expect(editor.text(sessionId)).toContain("[]");
});

test("built-in commands name the session, show its facts and export it", async () => {
  await using scene = await Scene.open([answer("One.")]);
  const editor = await scene.editor();
  const sessionId = await editor.create(scene.cwd);
  await editor.prompt(sessionId, "/name The name");
  expect(editor.of(sessionId, "session_info_update").at(-1)).toMatchObject({ title: "The name" });
  await editor.prompt(sessionId, "/session");
  expect(editor.text(sessionId)).toContain(sessionId);
  await editor.prompt(sessionId, "Go.");
  await editor.prompt(sessionId, "/export the page.html");
  expect(readFileSync(join(scene.cwd, "the page.html"), "utf8")).toContain("<html");
  await expect(editor.prompt(sessionId, "/compact")).rejects.toMatchObject({ code: -32_603 });
});

test("pi's death in a run is an error of its prompt, and its tools have failed", async () => {
  await using scene = await Scene.open([answer(call("bash", { command: "sleep 600" }))]);
  const editor = await scene.editor();
  const sessionId = await editor.create(scene.cwd);
  const prompt = editor.prompt(sessionId, "Wait.").catch((error: unknown) => error);
  await editor.untilToolRuns(sessionId);
  const { pid } = await scene.stage.client.session(sessionId).get();
  process.kill(pid as number, "SIGKILL");
  expect(await prompt).toMatchObject({ code: -32_603, message: "pi ended in the middle of the run." });
  expect(editor.of(sessionId, "tool_call_update").at(-1)).toMatchObject({ status: "failed" });
});

test("content of all kinds reaches the model in its order, and audio is refused", async () => {
  await using scene = await Scene.open([answer("I see.")]);
  const editor = await scene.editor();
  const sessionId = await editor.create(scene.cwd);
  const prompt = [
    { type: "text", text: "First." },
    { type: "resource", resource: { uri: "file:///a/b.ts", text: "const a = 1;" } },
    { type: "resource_link", uri: "file:///c/d.ts#L3", name: "d.ts" },
    { type: "text", text: "Last." },
  ];
  await editor.call("session/prompt", { sessionId, prompt });
  const [request] = scene.stage.provider.requests;
  expect(request?.countText("First.", { roles: ["user"] })).toBe(1);
  expect(request?.countText("const a = 1;", { roles: ["user"] })).toBe(1);
  expect(request?.countText("/c/d.ts", { roles: ["user"] })).toBe(1);
  const audio = [{ type: "audio", data: "AAAA", mimeType: "audio/wav" }];
  await expect(editor.call("session/prompt", { sessionId, prompt: audio })).rejects.toMatchObject({ code: -32_602 });
});

test("many cancellations of one session leave it ready for a prompt", async () => {
  await using scene = await Scene.open([answer("One.")]);
  const editor = await scene.editor();
  const sessionId = await editor.create(scene.cwd);
  for (let count = 0; count < 300; count++) editor.notify("session/cancel", { sessionId });
  expect(await editor.prompt(sessionId, "Go.")).toMatchObject({ stopReason: "end_turn" });
});

test.each([0, 1, 2, 4])("a prompt that is cancelled %i ms after it was sent is cancelled", async (ms) => {
  const gate = new Gate();
  await using scene = await Scene.open([answer("I thi", hold(gate), "nk.")]);
  const editor = await scene.editor();
  const sessionId = await editor.create(scene.cwd);
  const prompt = editor.prompt(sessionId, "Think.");
  if (ms > 0) await setTimeout(ms);
  editor.notify("session/cancel", { sessionId });
  expect(await prompt).toMatchObject({ stopReason: "cancelled" });
  expect(await scene.stage.client.session(sessionId).get()).toMatchObject({ state: "idle" });
});

test("a prompt starts another pi when the session's pi has ended", async () => {
  await using scene = await Scene.open([answer("One.")]);
  const editor = await scene.editor();
  const sessionId = await editor.create(scene.cwd);
  const session = scene.stage.client.session(sessionId);
  const { pid } = await session.get();
  process.kill(pid as number, "SIGKILL");
  await expect.poll(async () => (await session.get()).pid, patience).toBeUndefined();
  expect(await editor.prompt(sessionId, "Go.")).toMatchObject({ stopReason: "end_turn" });
  expect(editor.text(sessionId)).toBe("One.");
});

test("a prompt that a template rewrites in a run is shown to all others once, with its sender", async () => {
  const gate = new Gate();
  await using scene = await Scene.open([answer("I thi", hold(gate), "nk."), answer("Both."), answer("All.")]);
  const prompts = join(scene.stage.agentDir.path, "prompts");
  mkdirSync(prompts);
  writeFileSync(join(prompts, "longer.md"), "Something else: $@");
  const [editor, other] = [await scene.editor(), await scene.editor()];
  const sessionId = await editor.create(scene.cwd);
  await other.call("session/resume", { sessionId, cwd: scene.cwd });
  const run = editor.prompt(sessionId, "Think.");
  await Promise.all([editor, other].map((each) => each.until(() => each.text(sessionId) === "I thi")));
  const session = scene.stage.client.session(sessionId);
  const steered = [];
  for (const [n, each] of [editor, other].entries()) {
    steered.push(each.prompt(sessionId, `/longer ${n}`));
    await expect.poll(async () => (await session.getQueue()).steering.length, patience).toBe(n + 1);
  }
  gate.open();
  expect(await Promise.all([run, ...steered])).toMatchObject([{}, {}, {}].map(() => ({ stopReason: "end_turn" })));
  const shownTo = (each: Editor): unknown[] =>
    each.of(sessionId, "user_message_chunk").map(({ content, _meta }) => [(content as Json)["text"], _meta]);
  const from = (name: string): Json => ({ "pi-rpcd": { by: { clientId: expect.any(String), name } } });
  expect(shownTo(editor)).toEqual([["Something else: 1", from("ACP client")]]);
  await other.until(() => shownTo(other).length === 2);
  expect(shownTo(other)).toEqual([
    ["Think.", from("ACP client")],
    ["Something else: 0", from("ACP client")],
  ]);
  expect(new Set([...shownTo(editor), ...shownTo(other)].map((each) => JSON.stringify(each))).size).toBe(3);
});

test("a prompt that a template rewrites is not shown again", async () => {
  await using scene = await Scene.open(Array.from({ length: 8 }, (_, index) => answer(`${index}`)));
  const prompts = join(scene.stage.agentDir.path, "prompts");
  mkdirSync(prompts);
  writeFileSync(join(prompts, "longer.md"), "Something else: $@");
  const [editor, other] = [await scene.editor(), await scene.editor()];
  const sessionId = await editor.create(scene.cwd);
  await other.call("session/resume", { sessionId, cwd: scene.cwd });
  for (let count = 0; count < 8; count++) await editor.prompt(sessionId, "/longer one");
  expect(editor.of(sessionId, "user_message_chunk")).toEqual([]);
  await other.until(() => other.of(sessionId, "user_message_chunk").length === 8);
});
