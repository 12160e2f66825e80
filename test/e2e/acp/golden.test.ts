import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { answer, call, status, thinking } from "../../../provider/reply.ts";
import type { Step } from "../../../provider/script.ts";
import type { Unchecked } from "../../helpers/unchecked.ts";
import type { Editor, Json } from "./editor.ts";
import { Scene } from "./scene.ts";

// What an editor gets in each scenario, whole, as files in golden/: a change of what editors see is a change of these files.

interface Scenario {
  readonly name: string;
  readonly script?: readonly Step[];
  readonly abilities?: object;
  /** The option of a request for permission, or the value of a form. */
  readonly answer?: Json;
  /** Default: one prompt. */
  readonly play?: (editor: Editor, sessionId: string, scene: Scene) => Promise<unknown>;
}

const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const done = answer("Done.");

function tool(name: string, args: object): Step[] {
  return [answer(call(name, args)), done];
}

function ask(...questions: readonly object[]): NonNullable<Scenario["play"]> {
  return (editor, sessionId) => editor.prompt(sessionId, `/ask ${JSON.stringify(questions)}`);
}

const scenarios: readonly Scenario[] = [
  { name: "text", script: [answer("One ", "answer.")] },
  { name: "thinking", script: [answer(thinking("I think."), "I say.")] },
  { name: "read", script: tool("read", { path: "a.txt", offset: 2 }) },
  { name: "read an image", script: tool("read", { path: "pixel.png" }) },
  { name: "read a missing file", script: tool("read", { path: "missing.txt" }) },
  { name: "edit", script: tool("edit", { path: "a.txt", edits: [{ oldText: "two", newText: "2" }] }) },
  { name: "edit without a match", script: tool("edit", { path: "a.txt", edits: [{ oldText: "zero", newText: "0" }] }) },
  { name: "write a new file", script: tool("write", { path: "new.txt", content: "new\n" }) },
  { name: "write over a file", script: tool("write", { path: "a.txt", content: "other\n" }) },
  { name: "bash", script: tool("bash", { command: "echo out; echo '```'" }) },
  { name: "bash that fails", script: tool("bash", { command: "echo no; exit 3" }) },
  {
    name: "bash in a terminal",
    script: tool("bash", { command: "echo out" }),
    abilities: { _meta: { terminal_output: true } },
  },
  { name: "grep", script: tool("grep", { pattern: "two", path: "a.txt" }) },
  { name: "ls", script: tool("ls", { path: "." }) },
  { name: "an unknown tool", script: tool("no_such_tool", { word: "x" }) },
  { name: "two tools in one answer", script: [answer(call("read", { path: "a.txt" }), call("ls", {})), done] },
  { name: "length", script: [{ ...answer("Half"), stop: "length" }] },
  { name: "refusal", script: [{ ...answer("I will not."), stop: "refusal" }] },
  { name: "status 400", script: [status(400)] },
  { name: "status 401", script: [status(401)] },
  { name: "a retry", script: [status(500), done], abilities: { session: { notices: {} } } },
  {
    name: "an abort in a tool",
    script: [answer(call("bash", { command: "sleep 600" }))],
    play: async (editor, sessionId) => {
      const prompt = editor.prompt(sessionId, "Go.");
      await editor.untilToolRuns(sessionId);
      editor.notify("session/cancel", { sessionId });
      await prompt;
    },
  },
  {
    name: "a question of yes or no",
    answer: { outcome: { outcome: "selected", optionId: "0" } },
    play: ask({ method: "confirm", title: "Go on?", text: "With everything." }),
  },
  {
    name: "a choice of permissions",
    answer: { outcome: { outcome: "selected", optionId: "1" } },
    play: ask({ method: "select", title: "May it?", options: ["Allow always", "Deny"] }),
  },
  {
    name: "a question for a text",
    abilities: { elicitation: { form: {} } },
    answer: { action: "accept", content: { value: "blue" } },
    play: ask({ method: "input", title: "Which colour?", text: "a colour" }),
  },
  { name: "a question that nobody can answer", play: ask({ method: "editor", title: "Write it.", text: "before" }) },
  {
    name: "a push",
    script: [done],
    play: async (editor, sessionId, { stage }) => {
      const push = stage.client.session(sessionId).push({ customType: "note", content: "Note this." });
      await push.answered;
      await editor.until(() => editor.of(sessionId, "usage_update").length > 0);
    },
  },
  {
    name: "pi's death",
    script: [answer(call("bash", { command: "sleep 600" }))],
    play: async (editor, sessionId, { stage }) => {
      const prompt = editor.prompt(sessionId, "Go.").catch(() => {});
      await editor.untilToolRuns(sessionId);
      process.kill((await stage.client.session(sessionId).get()).pid as number, "SIGKILL");
      await prompt;
    },
  },
  {
    name: "a compaction and a load",
    script: [answer("One."), answer("Two."), answer("A summary."), answer("The turn.")],
    play: async (editor, sessionId, { cwd }) => {
      await editor.prompt(sessionId, "First.");
      await editor.prompt(sessionId, "Second.");
      await editor.prompt(sessionId, "/compact");
      await editor.call("session/load", { sessionId, cwd, mcpServers: [] });
    },
  },
  {
    name: "an image in a prompt",
    script: [done],
    play: (editor, sessionId) =>
      editor.call("session/prompt", {
        sessionId,
        prompt: [
          { type: "text", text: "See." },
          { type: "image", data: pixel, mimeType: "image/png" },
        ],
      }),
  },
];

test.each(scenarios)("an editor gets $name", async ({ name, script = [], abilities = {}, answer: given, play }) => {
  await using scene = await Scene.open(script, {
    settings: { retry: { enabled: true, maxRetries: 1, baseDelayMs: 1 }, compaction: { keepRecentTokens: 1 } },
  });
  writeFileSync(join(scene.cwd, "a.txt"), "one\ntwo\nthree\n");
  writeFileSync(join(scene.cwd, "pixel.png"), Buffer.from(pixel, "base64"));
  const editor = await scene.editor({ abilities, ...(given === undefined ? {} : { answer: () => given }) });
  const sessionId = await editor.create(scene.cwd);
  await editor.until(() => editor.of(sessionId, "available_commands_update").length > 0);
  const began = editor.received.length;
  const played = (play ?? ((each, id) => each.prompt(id, "Go.")))(editor, sessionId, scene);
  await played.catch(() => {});
  const text = transcript(editor.received.slice(began) as Unchecked[], scene, sessionId);
  await expect(text).toMatchFileSnapshot(join(import.meta.dirname, "golden", `${name.replaceAll(" ", "-")}.txt`));
});

/** Messages without what differs from run to run: ids, times, and how often a text was cut. */
function transcript(messages: readonly Unchecked[], { stage, cwd }: Scene, sessionId: string): string {
  const merged: Unchecked[] = [];
  for (const message of messages) {
    const { update } = message.params ?? {};
    if (update?.sessionUpdate === "available_commands_update" || isProgress(update)) continue;
    const last = merged.at(-1)?.params?.update;
    const isPiece = last?.sessionUpdate === update?.sessionUpdate && /_chunk$/.test(update?.sessionUpdate);
    if (isPiece && last.messageId === update.messageId && last.content.type === "text")
      last.content.text += update.content.text;
    else if (isSameStep(last, update)) Object.assign(last, update);
    else merged.push(structuredClone(message));
  }
  const names = new Map([[sessionId, "SESSION"]]);
  const known = (kind: string, id: string): string => {
    if (!names.has(id))
      names.set(id, `${kind}-${[...names.values()].filter((each) => each.startsWith(kind)).length + 1}`);
    return names.get(id) as string;
  };
  const plain = (key: string, value: unknown): unknown => {
    // The system prompt has the directory, whose length differs from machine to machine.
    if (typeof value !== "string")
      return /^(?:used|amount|cost|input|output|cacheRead|cacheWrite)$/.test(key) && typeof value === "number"
        ? 0
        : value;
    if (/^(?:messageId|toolCallId|terminalId|terminal_id|promptId|runId|compactionId|requestId)$/.test(key))
      return known(key, value);
    if (key === "updatedAt") return "TIME";
    if (key === "sessionId") return known("session", value);
    return value
      .replaceAll(cwd, "CWD")
      .replaceAll(stage.root, "ROOT")
      .replaceAll(sessionId, "SESSION")
      .replaceAll(/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, "UUID");
  };
  return `${merged.map((message) => JSON.stringify(message, plain, 1)).join("\n")}\n`;
}

/** What a running tool says is told only if it runs long enough. */
function isProgress({ sessionUpdate, status, title }: Unchecked = {}): boolean {
  return sessionUpdate === "tool_call_update" && status === undefined && title === undefined;
}

function isSameStep(last: Unchecked, update: Unchecked): boolean {
  return (
    update?.sessionUpdate === "tool_call_update" &&
    last?.sessionUpdate === "tool_call_update" &&
    last.toolCallId === update.toolCallId &&
    last.status === (update.status ?? last.status)
  );
}
