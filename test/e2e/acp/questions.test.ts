import { expect, test } from "vitest";
import { answer, call } from "../../../provider/reply.ts";
import type { Editor, Json } from "./editor.ts";
import { Scene, transports } from "./scene.ts";

const asksFirst = answer(call("bash", { command: "echo ask-first" }));

/** Answers every request for permission by the name of an option. */
function choose(name: string) {
  return (_method: string, { options }: Json): Json => {
    const { optionId } = (options as { optionId: string; name: string }[]).find((each) => each.name === name) ?? {};
    return { outcome: { outcome: "selected", optionId } };
  };
}

function ask(editor: Editor, sessionId: string, ...questions: readonly object[]): Promise<Json> {
  return editor.prompt(sessionId, `/ask ${JSON.stringify(questions)}`);
}

test.each(["Yes", "No"])("a tool that an extension asks about is answered with %s", async (word) => {
  await using scene = await Scene.open([asksFirst, answer("Done.")]);
  const editor = await scene.editor({ answer: choose(word) });
  const sessionId = await editor.create(scene.cwd);
  await editor.prompt(sessionId, "Go.");
  expect(editor.asked).toMatchObject([
    {
      method: "session/request_permission",
      params: {
        options: [
          { name: "Yes", kind: "allow_once" },
          { name: "No", kind: "reject_once" },
        ],
      },
    },
  ]);
  const [tool] = editor.of(sessionId, "tool_call");
  expect(editor.asked[0]?.params["toolCall"]).toMatchObject({ toolCallId: tool?.["toolCallId"], title: "Run it?" });
  const last = editor.of(sessionId, "tool_call_update").at(-1);
  expect(last).toMatchObject({ status: word === "Yes" ? "completed" : "failed" });
});

test.each([false, true])("an answered tool gets back its title and content, with terminals: %s", async (terminals) => {
  await using scene = await Scene.open([asksFirst, answer("Done.")]);
  const abilities = { _meta: { terminal_output: terminals } };
  const editor = await scene.editor({ abilities, answer: choose("Yes") });
  const sessionId = await editor.create(scene.cwd);
  await editor.prompt(sessionId, "Go.");
  // Editors take both from the question.
  const titled = editor.of(sessionId, "tool_call_update").filter(({ title }) => title === "echo ask-first");
  const [tool] = editor.of(sessionId, "tool_call");
  const content = terminals ? [{ type: "terminal", terminalId: tool?.["toolCallId"] }] : [];
  expect(titled.at(-1)).toMatchObject({ toolCallId: tool?.["toolCallId"], content });
});

test("a choice of permissions keeps its words, character by character", async () => {
  await using scene = await Scene.open();
  const options = ["Allow – always", "never", "Don’t ask", "OK"];
  const editor = await scene.editor({ answer: choose("Allow – always") });
  const sessionId = await editor.create(scene.cwd);
  await ask(editor, sessionId, { method: "select", title: "May it?", options });
  expect(editor.asked[0]?.params["options"]).toMatchObject(
    ["allow_always", "reject_once", "reject_once", "allow_once"].map((kind) => ({ kind })),
  );
  expect(editor.text(sessionId)).toContain('["Allow – always"]');
  // It belongs to no tool, so it has a tool call of its own, which ends with it.
  expect(editor.of(sessionId, "tool_call")).toMatchObject([{ title: "May it?", status: "pending" }]);
  expect(editor.of(sessionId, "tool_call_update")).toMatchObject([{ status: "completed" }]);
});

test("clients with forms are asked for texts and choices by forms", async () => {
  await using scene = await Scene.open();
  const editor = await scene.editor({
    abilities: { elicitation: { form: {} } },
    answer: (_method, { requestedSchema }) => {
      const { value } = (requestedSchema as { properties: { value: { enum?: string[]; default?: string } } })
        .properties;
      const chosen = value.enum?.[1] ?? (value.default === undefined ? undefined : `${value.default}!`);
      return chosen === undefined ? { action: "decline" } : { action: "accept", content: { value: chosen } };
    },
  });
  const sessionId = await editor.create(scene.cwd);
  await ask(
    editor,
    sessionId,
    { method: "select", title: "Which colour?", options: ["red", "green"] },
    { method: "editor", title: "Edit it.", text: "before" },
    { method: "input", title: "Which word?", text: "placeholder" },
  );
  expect(editor.asked.map(({ method }) => method)).toEqual(Array(3).fill("elicitation/create"));
  expect(editor.text(sessionId)).toContain('["green","before!",null]');
});

test("a text that nobody can give is cancelled, with a notice", async () => {
  await using scene = await Scene.open();
  const editor = await scene.editor({ abilities: { session: { notices: {} } } });
  const sessionId = await editor.create(scene.cwd);
  await ask(editor, sessionId, { method: "input", title: "Which word?" });
  expect(editor.asked).toEqual([]);
  const notices = editor.of(sessionId, "notice").map(({ title }) => title);
  expect(notices).toEqual(expect.arrayContaining([expect.stringContaining("Which word?"), "[null]"]));
});

test("another client's answer withdraws the request, and a late answer does nothing", async () => {
  await using scene = await Scene.open([asksFirst, answer("Done.")]);
  const late = Promise.withResolvers<Json>();
  const editor = await scene.editor({ answer: () => late.promise });
  const sessionId = await editor.create(scene.cwd);
  const prompt = editor.prompt(sessionId, "Go.");
  await editor.until(() => editor.asked.length === 1);
  const session = scene.stage.client.session(sessionId);
  const [{ dialogId = "" } = {}] = await session.dialogs();
  await session.respond(dialogId, { confirmed: true });
  await editor.until(() => editor.withdrawn.length === 1);
  late.resolve({ outcome: { outcome: "selected", optionId: "1" } });
  expect(await prompt).toMatchObject({ stopReason: "end_turn" });
  expect(editor.of(sessionId, "tool_call_update").at(-1)).toMatchObject({ status: "completed" });
});

test("session/cancel ends the questions of the run", async () => {
  await using scene = await Scene.open([asksFirst]);
  const editor = await scene.editor();
  const sessionId = await editor.create(scene.cwd);
  const prompt = editor.prompt(sessionId, "Go.");
  await editor.until(() => editor.asked.length === 1);
  editor.notify("session/cancel", { sessionId });
  expect(await prompt).toMatchObject({ stopReason: "cancelled" });
  expect(editor.withdrawn).toHaveLength(1);
  expect(await scene.stage.client.session(sessionId).dialogs()).toEqual([]);
});

test.each(transports)(
  "a client that cancels the run and its request for permission over %s leads to no further call of the model",
  async (over) => {
    const times = 20;
    await using scene = await Scene.open(
      Array.from({ length: times }, () => asksFirst),
      { over },
    );
    let cancelled = Promise.withResolvers<Json>();
    const editor = await scene.editor({ answer: () => cancelled.promise });
    const sessionId = await editor.create(scene.cwd);
    for (let n = 1; n <= times; n += 1) {
      const prompt = editor.prompt(sessionId, "Go.");
      await editor.until(() => editor.asked.length === n);
      editor.notify("session/cancel", { sessionId });
      cancelled.resolve({ outcome: { outcome: "cancelled" } });
      expect(await prompt).toMatchObject({ stopReason: "cancelled" });
      expect(scene.stage.provider.requests).toHaveLength(n);
      cancelled = Promise.withResolvers();
    }
  },
);

test("a question that one session does not answer holds up no other session", async () => {
  await using scene = await Scene.open([asksFirst, answer("The other."), answer("Done.")]);
  const editor = await scene.editor();
  const [asking, quiet] = [await editor.create(scene.cwd), await editor.create(scene.cwd)];
  const waiting = editor.prompt(asking, "Go.");
  await editor.until(() => editor.asked.length === 1);
  expect(await editor.prompt(quiet, "Go.")).toMatchObject({ stopReason: "end_turn" });
  expect(editor.text(quiet)).toBe("The other.");
  editor.notify("session/cancel", { sessionId: asking });
  await waiting;
});

test("questions of one session are asked one after the other", async () => {
  await using scene = await Scene.open();
  const open: PromiseWithResolvers<Json>[] = [];
  const editor = await scene.editor({
    answer: () => {
      const next = Promise.withResolvers<Json>();
      open.push(next);
      return next.promise;
    },
  });
  const sessionId = await editor.create(scene.cwd);
  const asked = ask(editor, sessionId, { method: "confirm", title: "One?" }, { method: "confirm", title: "Two?" });
  await editor.until(() => open.length === 1);
  // An answer to any request shows that the second question was not sent before.
  await editor.call("session/list", {});
  expect(open).toHaveLength(1);
  open[0]?.resolve({ outcome: { outcome: "selected", optionId: "0" } });
  await editor.until(() => open.length === 2);
  open[1]?.resolve({ outcome: { outcome: "cancelled" } });
  await asked;
  expect(editor.text(sessionId)).toContain("[true,false]");
});

test("a tool call of a repeated id is named as the client knows it, and an unknown option is no answer", async () => {
  const echo = (command: string) => answer(call("bash", { command }, "call_0"));
  await using scene = await Scene.open([echo("echo one"), echo("echo ask-first")]);
  const editor = await scene.editor({ answer: () => ({ outcome: { outcome: "selected", optionId: "" } }) });
  const sessionId = await editor.create(scene.cwd);
  const prompt = editor.prompt(sessionId, "Go.");
  await editor.until(() => editor.asked.length === 1);
  const [, second] = editor.of(sessionId, "tool_call");
  expect(editor.asked[0]?.params["toolCall"]).toMatchObject({ toolCallId: second?.["toolCallId"] });
  await editor.call("session/list", {});
  expect(await scene.stage.client.session(sessionId).dialogs()).toHaveLength(1);
  editor.notify("session/cancel", { sessionId });
  expect(await prompt).toMatchObject({ stopReason: "cancelled" });
});

test("a client that left a question to another one gets no notice of the other's refusal", async () => {
  await using scene = await Scene.open();
  const editor = await scene.editor({ abilities: { session: { notices: {} } } });
  const abilities = { elicitation: { form: {} } };
  const other = await scene.editor({ abilities, answer: () => ({ action: "decline" }) });
  const sessionId = await editor.create(scene.cwd);
  await other.call("session/resume", { sessionId, cwd: scene.cwd });
  await other.until(() => other.of(sessionId, "available_commands_update").length > 0);
  await ask(editor, sessionId, { method: "input", title: "Which word?" });
  expect(editor.of(sessionId, "notice").map(({ title }) => title)).toEqual(["[null]"]);
});

test("session/cancel ends the questions of a command, which is no run", async () => {
  await using scene = await Scene.open();
  const editor = await scene.editor();
  const sessionId = await editor.create(scene.cwd);
  const asked = ask(editor, sessionId, { method: "confirm", title: "Sure?" });
  await editor.until(() => editor.asked.length === 1);
  editor.notify("session/cancel", { sessionId });
  expect(await asked).toMatchObject({ stopReason: "cancelled" });
  expect(editor.withdrawn).toHaveLength(1);
});
