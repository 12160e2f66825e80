import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { Dialog } from "../../protocol/dialog.ts";
import type { SessionInfo } from "../../protocol/session.ts";
import { answer, call } from "../../provider/reply.ts";
import { Scene } from "../e2e/cli/scene.ts";
import { program } from "../helpers/programs.ts";
import { Terminal } from "./terminal.ts";

const root = join(import.meta.dirname, "..", "..");
const asking = join(root, "test", "fixtures", "extension", "asking.ts");

test("prompt in a terminal: questions are answered in place or elsewhere, or dropped with the run", async () => {
  await using scene = await Scene.open({
    script: [
      answer("I would like to run it.", call("bash", { command: "echo ask-first" })),
      answer("It is done."),
      answer("Once more.", call("bash", { command: "echo ask-first again" })),
      answer("Somebody else has said yes."),
      answer("A last time.", call("bash", { command: "echo ask-first at last" })),
    ],
  });
  const extensions = join(scene.env["PI_CODING_AGENT_DIR"] ?? "", "extensions");
  mkdirSync(extensions, { recursive: true });
  writeFileSync(join(extensions, "asking.ts"), `export { default } from ${JSON.stringify(asking)};\n`);
  const { sessionId } = await scene.json<SessionInfo>(["new", "--dialogs", "wait"]);
  const prompting = (text: string) =>
    Terminal.open([...program, "prompt", sessionId, text], { cwd: scene.cwd, env: scene.env });

  {
    // Before a tool: first "no", which answers nothing; then "yes".
    await using terminal = await prompting("Run it.");
    await terminal.shows(/I would like to run it\.[\s\S]*\? Run it\?\s+echo ask-first\s+y\/n\? *$/m);
    await terminal.type("perhaps");
    await terminal.press("Enter");
    await terminal.shows(/Type y or n\.[\s\S]*y\/n\? *$/m);
    await terminal.type("y");
    await terminal.press("Enter");
    await terminal.shows(/It is done\./);
    expect(await terminal.exitCode()).toBe(0);
    expect(scene.provider.requests.at(-1)?.hasText("ask-first\n")).toBe(true);
  }
  {
    // Every kind of question, in sequence; the last is dismissed.
    const witness = scene.start(["tail", sessionId, "--json"]);
    const questions = [
      { method: "select", title: "Which one?", options: ["the first", "the second"] },
      { method: "confirm", title: "Sure?", text: "It cannot be undone." },
      { method: "input", title: "Your name?", text: "a name" },
      { method: "editor", title: "Words", text: "some" },
      { method: "input", title: "Anything else?" },
    ];
    await using terminal = await prompting(`/ask ${JSON.stringify(questions)}`);
    await terminal.shows(/\? Which one\?\s+1\) the first\s+2\) the second\s+1-2\? *$/m);
    await terminal.type("2");
    await terminal.press("Enter");
    await terminal.shows(/\? Sure\?\s+It cannot be undone\.\s+y\/n\? *$/m);
    await terminal.type("n");
    await terminal.press("Enter");
    await terminal.shows(/\? Your name\?\s+\(a name\)\s+answer: *$/m);
    await terminal.type("Ada");
    await terminal.press("Enter");
    await terminal.shows(/\? Words\s+answer: some *$/m);
    await terminal.type(" more");
    await terminal.press("Enter");
    await terminal.shows(/\? Anything else\?\s+answer: *$/m);
    await terminal.press("C-d");
    expect(await terminal.exitCode()).toBe(0);
    await witness.said(/the second[^\n]*false[^\n]*Ada[^\n]*some more[^\n]*null/);
    witness.kill("SIGINT");
    await witness.ended;
  }
  {
    // Another client answers first.
    await using terminal = await prompting("Run it again.");
    await terminal.shows(/\? Run it\?\s+echo ask-first again\s+y\/n\? *$/m);
    const { dialogs } = await scene.json<{ dialogs: Dialog[] }>(["dialogs", sessionId]);
    await scene.json(["dialog", "answer", dialogs[0]?.dialogId ?? "", "--yes"]);
    await terminal.shows(/\(it has ended\)[\s\S]*Somebody else has said yes\./);
    expect(await terminal.exitCode()).toBe(0);
  }
  // Ctrl-C during a question applies to the run.
  await using terminal = await prompting("Run it for the last time.");
  await terminal.shows(/\? Run it\?\s+echo ask-first at last\s+y\/n\? *$/m);
  await terminal.press("C-c");
  expect(await terminal.exitCode()).toBe(130);
  expect(await terminal.text()).toContain("aborting the run");
  expect(await scene.json(["dialogs", sessionId])).toEqual({ dialogs: [] });
  expect((await scene.json<{ sessions: SessionInfo[] }>(["ls"])).sessions[0]?.state).toBe("idle");
});
