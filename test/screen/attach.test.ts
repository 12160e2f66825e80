import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { SessionInfo } from "../../protocol/session.ts";
import { answer, call, hang } from "../../provider/reply.ts";
import { Scene } from "../e2e/cli/scene.ts";
import { Terminal } from "./terminal.ts";

const root = join(import.meta.dirname, "..", "..");
const asking = join(root, "test", "fixtures", "extension", "asking.ts");
const program = [process.execPath, "--disable-warning=ExperimentalWarning", join(root, "cli", "main.ts")];

test("attach in a terminal: a prompt, its streaming answer, tools, questions, an abort, a restarted daemon", async () => {
  await using scene = await Scene.open({
    script: [
      answer("I look first.", call("bash", { command: "echo from-the-tool" })),
      answer("All is green: \u001b[2J\u001b]0;stolen\u0007 世界."),
      answer("This never ends.", hang()),
      answer("Back again."),
    ],
  });
  const extensions = join(scene.env["PI_CODING_AGENT_DIR"] ?? "", "extensions");
  mkdirSync(extensions, { recursive: true });
  writeFileSync(join(extensions, "asking.ts"), `export { default } from ${JSON.stringify(asking)};\n`);
  const { sessionId } = await scene.json<SessionInfo>(["new", "--dialogs", "wait"]);
  await using terminal = await Terminal.open([...program, "attach", sessionId], { cwd: scene.cwd, env: scene.env });

  // Its own prompt: earlier input is echoed by the terminal.
  await terminal.shows(new RegExp(`${sessionId.slice(0, 8)}[\\s\\S]*^>\\s*$`, "m"));
  await terminal.type("How is it?");
  await terminal.press("Enter");
  await terminal.shows(/I look first\./);
  await terminal.shows(/bash.*echo from-the-tool/);
  await terminal.shows(/All is green:.*世界\./);
  // A model's output is text, never terminal control sequences.
  expect(await terminal.text()).toMatch(/How is it\?[\s\S]*I look first\./);

  const question = { method: "select", title: "Which one?", options: ["the first", "the second"] };
  await terminal.type(`/ask ${JSON.stringify([question])}`);
  await terminal.press("Enter");
  await terminal.shows(/Which one\?[\s\S]*2[\s\S]*the second/);
  await terminal.type("2");
  await terminal.press("Enter");
  await terminal.shows(/\["the second"\]/);

  await terminal.type("Go on for ever.");
  await terminal.press("Enter");
  await expect.poll(() => scene.provider.requests.length).toBe(3);
  await terminal.press("C-c");
  await terminal.shows(/abort/i);

  await scene.json(["stop"]);
  await scene.json(["start"]);
  await terminal.type("Are you there?");
  await terminal.press("Enter");
  await terminal.shows(/Back again\./);
  await terminal.press("C-d");
  expect(await terminal.exitCode()).toBe(0);
});
