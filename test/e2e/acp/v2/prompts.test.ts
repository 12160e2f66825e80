import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { Gate } from "../../../../provider/gate.ts";
import { answer, call, hold, status, thinking } from "../../../../provider/reply.ts";
import { patience } from "../../../helpers/patience.ts";
import type { Unchecked } from "../../../helpers/unchecked.ts";
import type { SdkClient } from "./client.ts";
import { openScene, type SceneOfTwo } from "./scene.ts";

const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/** Resolves when pi has so many messages in its queue. */
async function queued({ stage }: SceneOfTwo, sessionId: string, count: number): Promise<void> {
  const session = stage.client.session(sessionId);
  await expect.poll(async () => (await session.getQueue()).steering.length, patience).toBe(count);
}

function messages(client: SdkClient, sessionId: string): readonly (readonly [string, string])[] {
  return [...client.view(sessionId).messages.values()].map(({ kind, blocks }) => [
    kind,
    blocks.map((block: Unchecked) => block.text ?? `[${block.type}]`).join(""),
  ]);
}

test("a prompt is answered with the id of its message, and states and updates tell the rest", async () => {
  await using scene = await openScene([
    answer(
      thinking("Hm. "),
      "I look. ",
      call("bash", { command: "echo hello; until test -e go; do sleep 0.01; done" }),
    ),
    answer("And ", call("read", { path: "pixel.png" }), "then "),
    answer("Done."),
  ]);
  writeFileSync(join(scene.cwd, "pixel.png"), Buffer.from(pixel, "base64"));
  const client = await scene.client();
  const sessionId = await client.create(scene.cwd);
  const prompt = [
    { type: "text", text: "Go." },
    { type: "image", data: pixel, mimeType: "image/png" },
    { type: "resource_link", uri: "file:///a.ts", name: "a.ts" },
  ];
  const { messageId } = await client.call("session/prompt", { sessionId, prompt });
  await client.until(() => client.of(sessionId, "terminal_output_chunk").length > 0);
  writeFileSync(join(scene.cwd, "go"), "");
  const usage = { input: expect.any(Number), output: expect.any(Number) };
  expect(await client.idle(sessionId)).toMatchObject({ stopReason: "end_turn", _meta: { "pi-rpcd": { usage } } });
  expect(client.states(sessionId).map(({ state }) => state)).toEqual(["running", "idle"]);
  expect(client.of(sessionId).at(-1).sessionUpdate).toBe("state_update");
  expect(messages(client, sessionId)).toEqual([
    ["user_message", "Go.\n\n/a.ts[image]"],
    ["agent_thought", "Hm. "],
    ["agent_message", "I look. "],
    ["agent_message", "And then "],
    ["agent_message", "Done."],
  ]);
  const view = client.view(sessionId);
  expect([...view.messages.values()][0]?.id).toBe(messageId);
  expect(view.title).toBe("Go.");
  expect(view.timeline.map((key) => (view.tools.has(key) ? "tool" : key.split(" ")[0]))).toEqual([
    "user_message",
    "agent_thought",
    "agent_message",
    "tool",
    "agent_message",
    "tool",
    "agent_message",
  ]);
  const [bash, read] = view.tools.values();
  expect(bash).toMatchObject({
    name: "bash",
    title: expect.stringContaining("echo hello"),
    kind: "execute",
    status: "completed",
  });
  expect(bash.content).toMatchObject([{ content: { text: "```\nhello\n```" } }]);
  expect([...view.terminals.values()]).toMatchObject([
    { cwd: scene.cwd, output: "hello\n", exitStatus: { exitCode: 0 } },
  ]);
  expect(read).toMatchObject({ status: "completed", locations: [{ path: join(scene.cwd, "pixel.png") }] });
  expect(read.content).toContainEqual({
    type: "content",
    content: { type: "image", data: pixel, mimeType: "image/png" },
  });
  expect(client.of(sessionId, "usage_update")).not.toEqual([]);
});

test("changes of files are patches", async () => {
  await using scene = await openScene([
    answer(
      call("edit", {
        path: "a.txt",
        edits: [
          { oldText: "one", newText: "1" },
          { oldText: "three", newText: "3" },
        ],
      }),
      call("write", { path: "b.txt", content: "new\n" }),
      call("write", { path: "c.txt", content: "other\n" }),
    ),
    answer("Done."),
  ]);
  writeFileSync(join(scene.cwd, "a.txt"), "one\ntwo\nthree\n");
  writeFileSync(join(scene.cwd, "c.txt"), "old\n");
  const client = await scene.client();
  const sessionId = await client.create(scene.cwd);
  await client.run(sessionId, "Go.");
  const [a, b, c] = ["a.txt", "b.txt", "c.txt"].map((name) => join(scene.cwd, name));
  const diffs = [...client.view(sessionId).tools.values()].map(({ content }) => content);
  const diff = (operation: string, path: unknown, text: string): object => ({
    type: "diff",
    changes: [{ operation, path, fileType: "text" }],
    patch: { format: "git_patch", text: `diff --git ${path} ${path}\n${text}` },
  });
  expect(diffs).toEqual([
    [diff("modify", a, `--- ${a}\n+++ ${a}\n@@ -1,3 +1,3 @@\n-one\n+1\n two\n-three\n+3\n`)],
    [diff("add", b, `new file mode 100644\n--- /dev/null\n+++ ${b}\n@@ -0,0 +1,1 @@\n+new\n`)],
    [diff("modify", c, `--- ${c}\n+++ ${c}\n@@ -1,1 +1,1 @@\n-old\n+other\n`)],
  ]);
});

test("failures and ends of runs are stop reasons of the idle state", async () => {
  await using scene = await openScene([
    status(400, { message: "the words of the provider" }),
    status(401),
    { ...answer("Half an ans"), stop: "length" },
  ]);
  const client = await scene.client();
  const sessionId = await client.create(scene.cwd);
  expect(await client.run(sessionId, "One.")).toMatchObject({
    stopReason: "error",
    error: { code: -32_603, message: expect.stringContaining("the words of the provider") },
  });
  expect(await client.run(sessionId, "Two.")).toMatchObject({ stopReason: "error", error: { code: -32_000 } });
  expect(await client.run(sessionId, "Three.")).toMatchObject({ stopReason: "max_tokens" });
});

test("a prompt during a run is answered when the run takes it in, and one that is withdrawn never is", async () => {
  const gate = new Gate();
  await using scene = await openScene([
    answer("I thi", hold(gate), "nk.", call("bash", { command: "echo" })),
    answer("Both."),
  ]);
  const client = await scene.client();
  const sessionId = await client.create(scene.cwd);
  await client.prompt(sessionId, "Think.");
  await client.until(() => client.text(sessionId) === "I thi");
  const steered = client.prompt(sessionId, "And this.");
  await queued(scene, sessionId, 1);
  const unwanted = new AbortController();
  const withdrawn = client.prompt(sessionId, "Never this.", unwanted.signal).catch((error: unknown) => error);
  await queued(scene, sessionId, 2);
  expect(messages(client, sessionId).filter(([kind]) => kind === "user_message")).toHaveLength(1);
  unwanted.abort();
  expect(await withdrawn).toMatchObject({ code: -32_800 });
  gate.open();
  const { messageId } = await steered;
  expect(await client.idle(sessionId)).toMatchObject({ stopReason: "end_turn" });
  expect(messages(client, sessionId)).toEqual([
    ["user_message", "Think."],
    ["agent_message", "I think."],
    ["user_message", "And this."],
    ["agent_message", "Both."],
  ]);
  expect([...client.view(sessionId).messages.values()][2]?.id).toBe(messageId);
  expect(scene.stage.provider.requests).toHaveLength(2);
});

test("session/cancel ends the run and the prompts that are not in the conversation", async () => {
  await using scene = await openScene([answer(call("bash", { command: "sleep 600" })), answer("After.")]);
  const client = await scene.client();
  const sessionId = await client.create(scene.cwd);
  await client.prompt(sessionId, "Wait.");
  await client.untilToolRuns(sessionId);
  const waiting = client.prompt(sessionId, "And this.").catch((error: unknown) => error);
  await queued(scene, sessionId, 1);
  client.cancel(sessionId);
  expect(await waiting).toMatchObject({ code: -32_800 });
  expect(await client.idle(sessionId)).toMatchObject({ stopReason: "cancelled" });
  expect([...client.view(sessionId).tools.values()]).toMatchObject([{ status: "failed" }]);
  expect(client.of(sessionId).at(-1)).toMatchObject({ sessionUpdate: "state_update", state: "idle" });
  expect(await client.run(sessionId, "Go on.")).toMatchObject({ stopReason: "end_turn" });
  for (let count = 0; count < 100; count++) client.cancel(sessionId);
});

test("a prompt that is cancelled at once is refused, or its run is cancelled", async () => {
  const gate = new Gate();
  await using scene = await openScene(Array.from({ length: 5 }, () => answer("I thi", hold(gate), "nk.")));
  const client = await scene.client();
  for (let count = 0; count < 4; count++) {
    const sessionId = await client.create(scene.cwd);
    const prompt = client.prompt(sessionId, "Think.").then(
      () => "inserted",
      ({ code }) => code,
    );
    client.cancel(sessionId);
    const answered = await prompt;
    if (answered === "inserted") expect(await client.idle(sessionId)).toMatchObject({ stopReason: "cancelled" });
    else expect(answered).toBe(-32_800);
    await scene.stage.client.session(sessionId).waitForIdle();
  }
});

test("commands are messages with a state of their own, also without a model", async () => {
  await using scene = await openScene([answer("By the template.")]);
  const prompts = join(scene.stage.agentDir.path, "prompts");
  mkdirSync(prompts);
  writeFileSync(join(prompts, "longer.md"), "Something else: $@");
  const client = await scene.client();
  const sessionId = await client.create(scene.cwd);
  expect(await client.run(sessionId, "/name The name")).toMatchObject({ stopReason: "end_turn" });
  expect(client.view(sessionId).title).toBe("The name");
  expect(await client.run(sessionId, "/ask []")).toMatchObject({ stopReason: "end_turn" });
  expect(client.of(sessionId, "notice")).toMatchObject([{ title: "[]" }]);
  expect(await client.run(sessionId, "/compact")).toMatchObject({ stopReason: "error", error: { code: -32_603 } });
  const states = client.states(sessionId).map(({ state }) => state);
  expect(states).toEqual(["running", "idle", "running", "idle", "running", "idle"]);
  // pi has a message for a template, with other words.
  const before = client.states(sessionId).length;
  const { messageId } = await client.prompt(sessionId, "/longer one");
  await client.idle(sessionId, before);
  const said = [...client.view(sessionId).messages.values()].filter(({ kind }) => kind === "user_message");
  expect(said.map(({ blocks }) => blocks[0].text)).toEqual([
    "/name The name",
    "/ask []",
    "/compact",
    "Something else: one",
  ]);
  expect(said.at(-1)?.id).toBe(messageId);
  expect(new Set(said.map(({ id }) => id)).size).toBe(4);
});

test("pi's death in a run is an error, and a prompt starts another pi", async () => {
  await using scene = await openScene([answer(call("bash", { command: "sleep 600" })), answer("After.")]);
  const client = await scene.client();
  const sessionId = await client.create(scene.cwd);
  await client.prompt(sessionId, "Wait.");
  await client.untilToolRuns(sessionId);
  const session = scene.stage.client.session(sessionId);
  process.kill((await session.get()).pid as number, "SIGKILL");
  expect(await client.idle(sessionId)).toMatchObject({
    stopReason: "error",
    error: { code: -32_603, message: "pi ended in the middle of the run." },
  });
  expect([...client.view(sessionId).tools.values()]).toMatchObject([{ status: "failed" }]);
  await expect.poll(async () => (await session.get()).pid, patience).toBeUndefined();
  expect(await client.run(sessionId, "Go on.")).toMatchObject({ stopReason: "end_turn" });
  expect(client.text(sessionId)).toBe("After.");
});
