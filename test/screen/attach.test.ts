import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { connect } from "../../client/index.ts";
import type { SessionInfo } from "../../protocol/session.ts";
import { Gate } from "../../provider/gate.ts";
import { answer, call, hang, hold, thinking } from "../../provider/reply.ts";
import { Scene } from "../e2e/cli/scene.ts";
import { program } from "../helpers/programs.ts";
import { Terminal } from "./terminal.ts";

const root = join(import.meta.dirname, "..", "..");
const asking = join(root, "test", "fixtures", "extension", "asking.ts");

/** The last row of the screen when it takes prompts: the end of the session's id, and its directory. */
const ready = (sessionId: string): RegExp => new RegExp(` · ${sessionId.slice(-8)} · \\S+project$`, "m");

function attach(scene: Scene, sessionId: string, options: { columns?: number; rows?: number } = {}): Promise<Terminal> {
  return Terminal.open([...program, "attach", sessionId], { cwd: scene.cwd, env: scene.env, ...options });
}

test("attach in a terminal: a prompt, its answer as Markdown, tools, questions, an abort, a restarted daemon", async () => {
  const hostile = "\u001b[2J\u001b]0;stolen\u0007\u001b]52;c;c3RvbGVu\u0007";
  await using scene = await Scene.open({
    script: [
      answer(thinking("I wonder."), "I look first.", call("bash", { command: "echo from-the-tool" })),
      answer(`All is **green**: ${hostile} 世界.\n\n\`\`\`ts\nconst a = 1; // ${hostile}\n\`\`\`\n`),
      answer("This never ends.", hang()),
      answer("Back again."),
    ],
  });
  const extensions = join(scene.env["PI_CODING_AGENT_DIR"] ?? "", "extensions");
  mkdirSync(extensions, { recursive: true });
  writeFileSync(join(extensions, "asking.ts"), `export { default } from ${JSON.stringify(asking)};\n`);
  const { sessionId } = await scene.json<SessionInfo>(["new", "--dialogs", "wait"]);
  await using terminal = await attach(scene, sessionId);
  await terminal.shows(ready(sessionId));

  await terminal.type("How is it?");
  await terminal.press("Enter");
  await terminal.shows(/❯ How is it\?[\s\S]*thinking: I wonder\. \(Ctrl-T[\s\S]*I look first\./);
  await terminal.shows(/\[bash\] echo from-the-tool\n {2}from-the-tool\n {2}✔ bash/);
  await terminal.shows(/All is green: \[2J\]0;stolen\]52;c;c3RvbGVu 世界\.\n\n```ts\n {2}const a = 1; \/\/ /);
  await terminal.shows(/── settled/);
  expect(await terminal.title()).not.toContain("stolen");

  const question = { method: "select", title: "Which one?", options: ["the first", "the second"] };
  await terminal.type(`/ask ${JSON.stringify([question])}`);
  await terminal.press("Enter");
  await terminal.shows(/Which one\?.*\n→ the first\n {2}the second/);
  await terminal.type("2");
  await terminal.press("Enter");
  await terminal.shows(/\["the second"\]/);

  await terminal.type("Go on for ever.");
  await terminal.press("Enter");
  await terminal.shows(/This never ends\.[\s\S]*· the model writes \d+ s.* · Esc aborts/);
  await terminal.type("half a thought");
  await terminal.press("Escape");
  await terminal.shows(/aborting the run[\s\S]*── aborted/);
  await terminal.press("C-c");

  await scene.json(["stop"]);
  await terminal.shows(/· no daemon answers \d+ s · pi-rpcd start starts one/);
  await terminal.type("Are you there?");
  await terminal.press("Enter");
  await terminal.shows(/Not sent: no daemon answers\.[\s\S]*^Are you there\? *$/m);
  await scene.json(["start"]);
  await terminal.shows(/the daemon is available again/);
  await terminal.press("Enter");
  await terminal.shows(/❯ Are you there\?[\s\S]*Back again\./);
  await terminal.press("C-d");
  expect(await terminal.exitCode()).toBe(0);
  expect((await terminal.text()).match(/❯ How is it\?/g)).toHaveLength(1);
});

test("attach keeps what is typed before it is ready, sends a long paste whole, and nothing of its commands to the model", async () => {
  await using scene = await Scene.open();
  const { sessionId } = await scene.json<SessionInfo>(["new"]);
  const { sessionId: other } = await scene.json<SessionInfo>(["new"]);
  await using terminal = await attach(scene, sessionId);
  await terminal.type("early one");
  await terminal.press("Enter");
  await terminal.type("early two");
  await terminal.shows(ready(sessionId));
  await terminal.shows(/^early one *\nearly two *$/m);
  await terminal.press("C-c");
  await terminal.shows(/^─+\n *\n─+$/m);

  const pasted = Array.from({ length: 2_000 }, (_, index) => `${index} ${"x".repeat(80)}`).join("\n");
  await terminal.paste(pasted);
  await terminal.shows(/^\[paste #1 \+2000 lines\]/m);
  expect(scene.provider.requests).toEqual([]);
  await terminal.press("Enter");
  await expect.poll(() => scene.provider.requests.length).toBe(1);
  expect(scene.provider.requests[0]?.hasText(pasted)).toBe(true);
  await terminal.shows(/── settled/);

  for (const [typed, shown] of [
    ["?", /Ctrl-D +leaves/],
    ["/help", /\/sessions \[SESSION\] +switches/],
    ["/modle x", /\/modle is not a command/],
    ["/name the parser", /^the parser · scripted\/model-1/m],
    ["/cost", /\$0\.\d+ for [\d,]+ tokens in 1 request /],
    ["/model scripted/model-1", /The next request goes to scripted\/model-1\./],
    ["!echo shell-$((40 + 2))", /\[bash\] echo shell-\$\(\(40 \+ 2\)\)\n {2}shell-42\n {2}✔ bash/],
  ] as const) {
    await terminal.type(typed);
    await terminal.press("Enter");
    await terminal.shows(shown);
    await terminal.press("C-c");
    // An empty line has two meanings for Ctrl-C; another key separates them.
    await terminal.press("Left");
  }
  expect(scene.provider.requests).toHaveLength(1);

  await terminal.type("/push The build is green.");
  await terminal.press("Enter");
  await terminal.shows(/» \[pi-rpcd\.push\] \S+ delivered/);
  await terminal.type(`/sessions ${other.slice(-8)}`);
  await terminal.press("Enter");
  await terminal.shows(ready(other));
  await terminal.type("In the other session.");
  await terminal.press("Enter");
  await terminal.shows(/Echo: In the other session\./);
  await terminal.type("/quit");
  await terminal.press("Enter");
  expect(await terminal.exitCode()).toBe(0);
});

test("attach ends a compaction by Esc, and shows a push that is inserted during a run", async () => {
  const gate = new Gate();
  await using scene = await Scene.open({
    script: [
      answer("One."),
      answer("Two."),
      answer("A summary", hang()),
      answer("Working", hold(gate), "."),
      answer("Seen."),
    ],
  });
  const settings = { compaction: { enabled: true, reserveTokens: 1_000, keepRecentTokens: 1 } };
  const agent = scene.env["PI_CODING_AGENT_DIR"] ?? "";
  const file = join(agent, "settings.json");
  const before = existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : {};
  writeFileSync(file, JSON.stringify({ ...before, ...settings }));
  const { sessionId } = await scene.json<SessionInfo>(["new"]);
  await using terminal = await attach(scene, sessionId);
  await terminal.shows(ready(sessionId));
  for (const [typed, shown] of [
    ["First.", /One\.[\s\S]*── settled/],
    ["Second.", /Two\.[\s\S]*── settled/],
    ["/compact now", /· compacting \d+ s.* · Esc aborts/],
  ] as const) {
    await terminal.type(typed);
    await terminal.press("Enter");
    await terminal.shows(shown);
  }
  await expect.poll(() => scene.provider.requests.length).toBe(3);
  await terminal.press("Escape");
  await terminal.shows(/ending the compaction[\s\S]*✘ [\s\S]*^\/compact now *$/m);
  await terminal.shows(/^(?![\s\S]*compacting \d+ s)/);
  await terminal.press("C-c");
  await terminal.type("Work.");
  await terminal.press("Enter");
  await terminal.shows(/Working/);
  await scene.run(["push", sessionId, "Build 318 is green.", "--type", "script"]);
  gate.open();
  await terminal.shows(/» \[script\] Build 318 is green\.[\s\S]*── settled/);
  expect((await terminal.text()).match(/» \[script\] Build 318 is green\./g)).toHaveLength(1);
  await terminal.press("C-d");
  expect(await terminal.exitCode()).toBe(0);
});

test("attach queues by Alt-Enter, names other clients, and repeats nothing when the window changes", async () => {
  const gate = new Gate();
  const lines = Array.from({ length: 80 }, (_, index) => `Row ${index}.`).join("\n\n");
  await using scene = await Scene.open({
    script: [answer(lines), answer("I work", hold(gate), "."), answer("To the queued one."), answer("To neovim.")],
  });
  const { sessionId } = await scene.json<SessionInfo>(["new"]);
  await using terminal = await attach(scene, sessionId, { columns: 80, rows: 24 });
  await terminal.shows(ready(sessionId));
  await terminal.type("Count.");
  await terminal.press("Enter");
  await terminal.shows(/Row 79\.[\s\S]*── settled/);
  await terminal.type("Work.");
  await terminal.press("Enter");
  await terminal.shows(/I work/);
  await terminal.type("Later, please.");
  await terminal.press("M-Enter");
  await terminal.shows(/queued: Later, please\./);
  await using client = await connect({ stateDir: scene.stateDir, name: "neovim on laptop", reconnect: false });
  await client.session(sessionId).prompt("From the editor.", { ifRunning: "followUp" });
  await terminal.shows(/queued by neovim on laptop: From the editor\./);
  gate.open();
  await terminal.shows(/❯ neovim on laptop: From the editor\.[\s\S]*To neovim\.[\s\S]*── settled/);
  for (const [columns, rows] of [
    [50, 24],
    [200, 40],
    [80, 24],
  ] as const) {
    await terminal.resize(columns, rows);
    await expect.poll(() => terminal.text()).toMatch(new RegExp(`^─{${columns}}$`, "m"));
    await expect.poll(async () => (await terminal.text()).match(/^Row \d+\.$/gm)).toHaveLength(80);
    expect((await terminal.text()).match(/To neovim\./g)).toHaveLength(1);
  }
  await terminal.press("C-c", "C-c");
  expect(await terminal.exitCode()).toBe(0);
});

test("attach stops with Ctrl-Z, and continues with fg; without Unicode it shows ASCII", async () => {
  await using scene = await Scene.open();
  const { sessionId } = await scene.json<SessionInfo>(["new"]);
  const env = { ...scene.env, LC_ALL: "C", NO_COLOR: "1", PS1: "shell$ " };
  await using terminal = await Terminal.open(["bash", "--norc", "--noediting", "-i"], { cwd: scene.cwd, env });
  await terminal.shows(/^shell\$/m);
  await terminal.type(`${[...program, "attach", sessionId].join(" ")}; echo "left with $?"`);
  await terminal.press("Enter");
  await terminal.shows(new RegExp(` - ${sessionId.slice(-8)} - `));
  await terminal.type("unfinished");
  await terminal.shows(/^unfinished/m);
  await terminal.press("C-z");
  await terminal.shows(/Stopped/);
  await terminal.type("echo still-a-shell-$((1 + 1))");
  await terminal.press("Enter");
  await terminal.shows(/^still-a-shell-2$/m);
  await terminal.type("fg");
  await terminal.press("Enter");
  await terminal.shows(/^(?![\s\S]*Stopped)[\s\S]*^unfinished/m);
  await terminal.press("Enter");
  await terminal.shows(/^> unfinished[\s\S]*Echo: unfinished[\s\S]*-- settled/m);
  await terminal.press("C-d");
  await terminal.shows(/^shell\$ *$/m);
});
