import { mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { expect, test } from "vitest";
import { connect } from "../../../../client/index.ts";
import type { SessionInfo } from "../../../../protocol/session.ts";
import { Gate } from "../../../../provider/gate.ts";
import { answer, call, delayed, hold } from "../../../../provider/reply.ts";
import { fencesOf, read } from "../../../contract/docs/documents.ts";
import { type Ended, errorName, Scene } from "../scene.ts";

/** Changes pi's settings before it starts. */
function setUp(scene: Scene, settings: object): void {
  const file = join(scene.env["PI_CODING_AGENT_DIR"] ?? "", "settings.json");
  writeFileSync(file, JSON.stringify({ ...JSON.parse(readFileSync(file, "utf8")), ...settings }));
}

/** The lines of a command that must succeed. */
async function linesOf(scene: Scene, ...args: readonly string[]): Promise<readonly string[]> {
  return okay(await scene.run(args))
    .stdout.split("\n")
    .slice(0, -1);
}

function okay(ended: Ended): Ended {
  expect([ended.code, ended.stderr]).toEqual([0, expect.any(String)]);
  return ended;
}

/** Names of methods, of fields of calls, and of pi's events. */
const wireWords = /\b(?:session|prompt|delivery)\/[a-z]|agent_settled|ifRunning|force: true/;

test("messages steer and follow a run, wait in its queue, and an abort ends it", async () => {
  const gate = new Gate();
  await using scene = await Scene.open({ script: [delayed(hold(gate), answer("Never sent."))] });
  const { sessionId } = await scene.json<SessionInfo>(["new"]);
  await linesOf(scene, "prompt", sessionId, "--no-wait", "begin");
  await gate.reached;

  expect(await linesOf(scene, "queue", "show", "last")).toEqual(["The queue is empty."]);
  expect(await linesOf(scene, "steer", "last", "left", "turn")).toEqual([
    "Queued. The agent gets it before its next request.",
  ]);
  const piped = await scene.run(["follow-up", "last", "-"], { stdin: "then\ntests\n" });
  expect(okay(piped).stdout).toBe("Queued. The agent gets it when its run would end.\n");
  expect(await linesOf(scene, "queue", "show", "last")).toEqual([
    "BEFORE THE NEXT REQUEST",
    expect.stringMatching(/^ {2}left turn \(.+\)$/),
    "WHEN THE RUN WOULD END",
    expect.stringMatching(/^ {2}then \| tests \(.+\)$/),
  ]);
  expect(await scene.json(["queue", "show", "last"])).toMatchObject({
    steering: [{ text: "left turn" }],
    followUp: [{ text: "then\ntests" }],
  });

  const busy = await scene.run(["prompt", "last", "now"]);
  expect([busy.code, busy.stderr]).toEqual([1, expect.stringContaining("--if-running steer or --if-running followUp")]);
  const asleep = await scene.run(["hibernate", "last"]);
  expect([asleep.code, asleep.stderr]).toEqual([1, expect.stringContaining("--force does it")]);
  const compacting = await scene.run(["compact", "last"]);
  expect([compacting.code, compacting.stderr]).toEqual([1, expect.stringContaining("pi-rpcd abort")]);
  for (const { stderr } of [busy, asleep, compacting]) expect(stderr).not.toMatch(wireWords);

  expect(await linesOf(scene, "queue", "clear", "last")).toEqual(["removed: left turn", "removed: then | tests"]);
  expect(await linesOf(scene, "queue", "clear", "last")).toEqual(["The queue was empty."]);
  await linesOf(scene, "push", "last", "--id", "held-1", "a push");
  expect(await linesOf(scene, "abort", "last")).toEqual(["The run is aborted.", "1 push is parked."]);
  expect(await scene.json(["abort", "last"])).toMatchObject({ aborted: false });
  const [idle] = await linesOf(scene, "abort", "last");
  expect(idle).toBe("Neither a run nor a compaction was active.");
  expect(await linesOf(scene, "steer", "last", "alone")).toEqual(["No run was active, so the message started one."]);
  expect(await scene.json(["follow-up", "last", "and then"])).toMatchObject({ promptId: expect.any(String) });
  expect((await scene.run(["prompt", "last", "--if-running", "followUp", "end"])).code).toBe(0);
  const { requests } = scene.provider;
  expect(requests.filter((request) => request.countText("left turn") > 0)).toEqual([]);
  expect(requests.at(-1)?.countText("alone")).toBeGreaterThan(0);
});

test("a session is renamed, changes its model, and is compacted, drawn and exported", async () => {
  await using scene = await Scene.open();
  setUp(scene, { compaction: { enabled: true, reserveTokens: 1_000, keepRecentTokens: 1 } });
  const { sessionId, file } = await scene.json<SessionInfo>(["new"]);
  expect(await linesOf(scene, "rename", "last", "review", "of", "it")).toEqual([
    `${sessionId} is now called review of it.`,
  ]);
  expect(await scene.json(["rename", "review of it", "review"])).toEqual({ sessionId, name: "review" });
  for (const name of ["-x", "", "a\u0007b", "x".repeat(201)]) {
    const wrong = await scene.run(["rename", "review", "--", name]);
    const words = "NAME must be 1 to 200 characters without control characters, the first not a -.";
    expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining(words)]);
  }
  okay(await scene.run(["hibernate", "review"]));
  const early = await scene.run(["export", "review", "early.jsonl"]);
  expect([early.code, early.stderr]).toEqual([1, expect.stringMatching(/Send a prompt first\. \(no_session_file\)/)]);

  expect(await linesOf(scene, "model", "show", "review")).toEqual(["scripted/model-1, thinking off"]);
  const several = await scene.run(["model", "set", "review", "model-2"]);
  expect([several.code, several.stderr]).toEqual([1, expect.stringContaining("\n  scripted/model-2\n")]);
  expect(await linesOf(scene, "model", "set", "review", "scripted/model-2")).toEqual([
    "The next request goes to scripted/model-2.",
  ]);
  expect(await scene.json(["model", "show", "review"])).toEqual({
    model: expect.objectContaining({ provider: "scripted", id: "model-2" }),
    thinkingLevel: "off",
  });
  const misspelt = await scene.run(["model", "set", "review", "scripted/modle-2"]);
  expect([misspelt.code, misspelt.stderr]).toEqual([1, expect.stringContaining("Did you mean scripted/model-2?")]);
  const listed = await linesOf(scene, "model", "list", "review");
  expect(listed).toEqual(
    expect.arrayContaining([
      expect.stringMatching(/^scripted \(2, .+\)$/),
      expect.stringMatching(/^ {3}scripted\/model-1 +200\.0k tokens$/),
      expect.stringMatching(/^\* {2}scripted\/model-2 +200\.0k tokens, current$/),
    ]),
  );
  expect((await scene.json<{ models: unknown[] }>(["model", "list"])).models.length).toBeGreaterThanOrEqual(8);

  for (const text of ["Why is it slow?", "Turn it on."]) okay(await scene.run(["prompt", "review", text]));
  const client = await connect({ stateDir: scene.stateDir });
  const session = client.session(sessionId);
  const { entries } = await client.call("session/getEntries", { sessionId });
  const users = entries.filter((entry) => JSON.stringify(entry).includes('"role":"user"'));
  await session.setLabel(users[0]?.id ?? "", "cause");
  await session.navigate(users[1]?.id ?? "");
  await client.close();
  okay(await scene.run(["prompt", "review", "Measure first."]));
  const drawn = await linesOf(scene, "tree", "review");
  expect(drawn.map((line) => line.replace(/[0-9a-f]{8} /, "ID "))).toEqual([
    "ID  [cause] user: Why is it slow?",
    expect.stringMatching(/^ID {2}assistant: /),
    "├─ ID  user: Turn it on.",
    expect.stringMatching(/^│ {2}ID {2}assistant: /),
    "└─ ID  user: Measure first.",
    expect.stringMatching(/^ {3}ID {2}assistant: .* ◀ the current end$/),
  ]);
  expect((await linesOf(scene, "tree", "review", "--all")).length).toBeGreaterThan(drawn.length);
  expect(await scene.json(["tree", "review"])).toMatchObject({
    leafId: expect.any(String),
    labels: [{ entryId: users[0]?.id, label: "cause" }],
    entries: expect.any(Array),
  });

  const [compacted = ""] = await linesOf(scene, "compact", "review", "Keep", "names.");
  expect(compacted).toMatch(/^Compacted: [\d,]+ tokens/);
  expect(scene.provider.requests.some((request) => request.countText("Keep names.") > 0)).toBe(true);
  const again = await scene.run(["compact", "review"]);
  expect([again.code, again.stderr]).toEqual([1, expect.stringMatching(/^pi-rpcd: pi refused: /)]);

  const path = join(scene.cwd, `session-${sessionId.slice(-8)}.html`);
  expect(await linesOf(scene, "export", "review")).toEqual([path]);
  expect(readFileSync(path, "utf8")).toContain("<html");
  expect(statSync(path).mode & 0o777).toBe(0o600);
  const twice = await scene.run(["export", "review", path, "--json"]);
  expect([twice.code, errorName(twice.stderr)]).toEqual([1, "file_exists"]);
  expect(await linesOf(scene, "export", "review", path, "--force")).toEqual([path]);
  const copy = join(scene.cwd, "review.jsonl");
  expect(await scene.json(["export", "review", "review.jsonl"])).toEqual({ path: copy, bytes: statSync(copy).size });
  expect(readFileSync(copy, "utf8")).toBe(readFileSync(file, "utf8"));
  expect((await scene.run(["export", "review", "review.txt"])).code).toBe(2);
  for (const kind of ["html", "jsonl"]) {
    const away = join(scene.cwd, "missing", `x.${kind}`);
    const nowhere = await scene.run(["export", "review", away]);
    const message = `${away} cannot be written: the directory ${join(scene.cwd, "missing")} does not exist. (ENOENT)`;
    expect([nowhere.code, nowhere.stderr]).toEqual([1, expect.stringContaining(message)]);
  }
});

test("a session is chosen by the end of its id, its name or its directory, and ambiguous words list the sessions", async () => {
  await using scene = await Scene.open();
  const folders = ["api-server", "web-shop"].map((name) => join(scene.cwd, name));
  const ids: string[] = [];
  for (const cwd of folders) {
    mkdirSync(cwd);
    ids.push((await scene.json<SessionInfo>(["new", "--cwd", cwd])).sessionId);
  }
  const ends = ids.map((id) => id.slice(-8));
  const listed = await linesOf(scene, "ls");
  expect(listed.slice(1).map((line) => line.split(" ")[0])).toEqual(ends.toReversed());
  const idOf = async (word: string): Promise<unknown> => (await scene.json(["hibernate", word]))["sessionId"];
  for (const [at, folder] of folders.entries()) {
    expect(await idOf(ends[at] ?? "")).toBe(ids[at]);
    expect(await idOf(basename(folder).slice(0, 5))).toBe(ids[at]);
  }

  // Ids begin with the time. It may have changed its eighth digit between the two sessions.
  const [first = "", second = ""] = ids;
  const beginning = first.slice(
    0,
    Math.min(
      8,
      [...first].findIndex((digit, at) => digit !== second[at]),
    ),
  );
  const ambiguous = await scene.run(["hibernate", beginning]);
  const [message = "", ...candidates] = ambiguous.stderr.split("\n");
  expect([ambiguous.code, message]).toEqual([1, expect.stringContaining(`"${beginning}" matches 2 sessions.`)]);
  expect(candidates.map((line) => line.trim().split(/ +/))).toEqual([
    [ends[1], "-", folders[1]],
    [ends[0], "-", folders[0]],
    [""],
  ]);
  const parts = await scene.run(["rm", "web-shop", "--yes", "--json"]);
  expect([parts.code, errorName(parts.stderr)]).toEqual([1, "session_not_found"]);

  const { sessionId: named } = await scene.json<SessionInfo>(["new", "--name", ends[0] ?? ""]);
  const both = await scene.run(["rm", ends[0] ?? "", "--yes"]);
  expect([both.code, both.stderr]).toEqual([1, expect.stringMatching(/ matches 2 sessions\. .*\(session_ambiguous\)/)]);
  for (const id of [ids[0] ?? "", named]) expect(both.stderr).toContain(id.slice(-8));
  expect(await linesOf(scene, "rm", named, "--yes")).toEqual([`${named} is deleted.`]);

  const { deliveryId } = await scene.json<{ deliveryId: string }>(["push", "web-shop", "--no-trigger", "later"]);
  const [, row = ""] = await linesOf(scene, "deliveries");
  expect(row).toContain(`${deliveryId.slice(-8)} `);
  const [shown = ""] = await linesOf(scene, "delivery", "show", deliveryId.slice(-8));
  expect(shown).toContain(deliveryId);

  okay(await scene.run(["prompt", "api-server", "hello"]));
  okay(await scene.run(["close", "api-server"]));
  expect(await linesOf(scene, "open", ends[0] ?? "")).toEqual([ids[0]]);
});

test("prompt and tail show what extensions say, and tail ends when its reader has gone", async () => {
  await using scene = await Scene.open();
  const extension = join(import.meta.dirname, "..", "..", "..", "fixtures", "extension", "saying.ts");
  const { sessionId } = await scene.json<SessionInfo>(["new", "--extension", extension]);
  const { stdout, stderr } = okay(await scene.run(["prompt", "last", "/say hello"]));
  expect([stdout, stderr]).toEqual(["", "said hello\nsaying: about hello\n"]);
  const log = (await linesOf(scene, "tail", "last", "--no-follow")).filter((line) => line.includes("extension_ui"));
  expect(log.map((line) => line.split(/ {2,}/).at(-1))).toEqual(["said hello", "saying: about hello"]);

  // No event arrives: only the end of the reader can end it.
  const piped = await scene.shell(`pi-rpcd tail ${sessionId} | head -1; echo "\${PIPESTATUS[0]}"`);
  expect(piped).toMatch(/^ +\d+ .*\n0\n$/);
});

test("cost and context show estimate what a session saved", async () => {
  const output = "for n in $(seq 1 4000); do echo line $n of a long output; done";
  await using scene = await Scene.open({ script: [answer(call("bash", { command: output })), "Read.", "Again."] });
  okay(await scene.run(["new", "--profile", "lean"]));
  for (const text of ["Run it.", "Go on."]) okay(await scene.run(["prompt", "last", text]));
  const saved = expect.stringMatching(
    /^Saved about [\d,]+ tokens \(\$[\d.]+\) by .*toolResults.*This is an estimate\.$/,
  );
  expect(await linesOf(scene, "cost", "last")).toEqual(expect.arrayContaining([saved]));
  expect(await scene.json(["cost", "last"])).toMatchObject({
    saved: { parts: { toolResults: { savedTokens: expect.any(Number) } } },
  });
  expect(await linesOf(scene, "context", "show", "last")).toEqual(expect.arrayContaining([saved]));
});

test("the commands for every day in docs/cli.md work as written", async () => {
  const lines = fencesOf(read("docs/cli.md")).find(({ text }) => text.includes("rename last review"))?.text ?? "";
  const gate = new Gate();
  await using scene = await Scene.open({ script: ["It parses.", delayed(hold(gate), answer("Never sent."))] });
  setUp(scene, { compaction: { enabled: true, reserveTokens: 1_000, keepRecentTokens: 1 } });
  await linesOf(scene, "new");
  okay(await scene.run(["prompt", "last", "What does it do?"]));
  await linesOf(scene, "prompt", "last", "--no-wait", "Review it.");
  await gate.reached;
  const script = lines
    .replaceAll("npm run --silent pi-rpcd --", "pi-rpcd")
    .replace("anthropic/claude-sonnet-5", "scripted/model-2");
  const output = await scene.shell(script);
  for (const shown of [
    "Queued. The agent gets it before its next request.",
    "WHEN THE RUN WOULD END\n  Then run the tests.",
    "The run is aborted.",
    "The next request goes to scripted/model-2.",
    /Compacted: .+ tokens/,
    "user: Review it.",
    join(scene.cwd, "review.html"),
  ]) {
    if (typeof shown === "string") expect(output).toContain(shown);
    else expect(output).toMatch(shown);
  }
});

test("a second compaction is refused, because pi would abort the first, and an abort ends the first", async () => {
  const gate = new Gate();
  await using scene = await Scene.open({ script: ["One.", "Two.", delayed(hold(gate), answer("Never sent."))] });
  setUp(scene, { compaction: { enabled: true, reserveTokens: 1_000, keepRecentTokens: 1 } });
  await linesOf(scene, "new");
  for (const text of ["first", "second"]) okay(await scene.run(["prompt", "last", text]));
  const first = scene.start(["compact", "last"]);
  await gate.reached;
  const second = await scene.run(["compact", "last"]);
  expect([second.code, second.stderr]).toEqual([1, expect.stringMatching(/A compaction is active.*pi-rpcd abort\. /)]);
  expect(await linesOf(scene, "abort", "last")).toEqual(["The compaction is aborted."]);
  expect((await first.ended).code).toBe(1);
});
