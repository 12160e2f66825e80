import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { limits } from "../../../server/configuration/limits.ts";
import type { Covers } from "../../../server/core/session-scope.ts";
import { findSessionFile } from "../../../server/pi/session-search.ts";
import { closedSession } from "../../../server/store/closed-sessions.ts";
import { recorder, startCore } from "../../helpers/core.ts";

const prompt = { text: "hello", ifRunning: "refuse" } as const;

test("opening or creating a session that is being created returns that session", async () => {
  await using core = await startCore();
  const { registry } = core;
  const creating = registry.create({ cwd: core.cwd }, "one");
  const again = registry.create({ cwd: core.cwd }, "one");
  // Its file exists before its pi does.
  await expect
    .poll(() => findSessionFile("one", { ...process.env, PI_CODING_AGENT_DIR: `${core.root}/agent` }))
    .toBeDefined();
  const opened = await registry.files.open({ sessionId: "one" });
  const created = await creating;
  expect(opened).toBe(created);
  expect(await again).toBe(created);
  expect(registry.all()).toEqual([created]);
});

test("sessions that are being created count towards the limit from their first step on", async () => {
  await using core = await startCore({ limits: { maxSessions: 2 } });
  const attempts = await Promise.allSettled(
    ["one", "two", "three"].map((id) => core.registry.create({ cwd: core.cwd }, id)),
  );
  expect(attempts.map(({ status }) => status)).toEqual(["fulfilled", "fulfilled", "rejected"]);
});

test("a session that is deleted while it is being closed has no file afterwards", async () => {
  await using core = await startCore({ limits: { child: { ...limits.child, afterEofMs: 200 } } });
  core.behave("write", "ignore-eof");
  const session = await core.registry.create({ cwd: core.cwd }, "one");
  await session.prompting.prompt(prompt);
  await session.settled();
  expect(readFileSync(session.file, "utf8")).toContain("hello");
  const closing = core.registry.close("one");
  const deleting = core.registry.files.delete("one");
  await Promise.all([closing, deleting]);
  expect([existsSync(session.file), existsSync(`${session.file}.lease`), core.registry.all()]).toEqual([
    false,
    false,
    [],
  ]);
});

test("a run that begins in the last moment before hibernation is reported as interrupted", async () => {
  await using core = await startCore({ limits: { child: { ...limits.child, afterEofMs: 200 } } });
  core.behave("ignore-eof", "run-at-eof");
  const session = await core.registry.create({ cwd: core.cwd });
  const heard = recorder();
  session.subscribe(heard);
  await session.supervisor.hibernate(false);
  const { params } = await heard.until(({ params: { outcome } }) => outcome !== undefined);
  expect(params).toMatchObject({ outcome: "interrupted" });
  expect(session.state.kind).toBe("hibernated");
});

test("opening a session whose file disappears or is replaced is refused, and creates no file", async () => {
  await using core = await startCore();
  const directory = join(core.root, "agent", "sessions", "--somewhere--");
  mkdirSync(directory, { recursive: true });
  const file = join(directory, "1_one.jsonl");
  const header = (id: string): string =>
    `${JSON.stringify({ type: "session", version: 3, id, timestamp: new Date(0).toISOString(), cwd: core.cwd })}\n`;
  for (const [meanwhile, reason, left] of [
    [() => rmSync(file), "missing", undefined],
    [() => truncateSync(file), "header_damaged", ""],
    [() => writeFileSync(file, header("two")), "other_session", header("two")],
  ] as const) {
    writeFileSync(file, header("one"));
    // pi is asked after the file was checked.
    const covers = (): boolean => {
      meanwhile();
      return true;
    };
    const opening = core.registry.files.open({ file }, { covers });
    await expect(opening).rejects.toMatchObject({ kind: "session_file_unusable", data: { reason } });
    expect(core.registry.all()).toEqual([]);
    expect(readdirSync(directory)).toEqual(left === undefined ? [] : ["1_one.jsonl"]);
    if (left !== undefined) expect(readFileSync(file, "utf8")).toBe(left);
  }
});

const message = `${JSON.stringify({ type: "message", id: "a", parentId: null, message: { role: "user", content: "Hi." } })}\n`;

test("opening or creating a session again waits until it is closed", async () => {
  await using core = await startCore({ limits: { child: { ...limits.child, afterEofMs: 100 } } });
  const { registry, cwd } = core;
  core.behave("ignore-eof");
  const { file } = await registry.create({ cwd }, "one");
  writeFileSync(file, message, { flag: "a" });
  for (const again of [
    () => registry.files.open({ sessionId: "one" }),
    () => registry.files.open({ file }),
    () => registry.create({ cwd }, "one"),
  ]) {
    const closing = registry.close("one");
    const session = await again();
    await closing;
    expect([registry.get("one") === session, session.state.kind, session.file]).toEqual([true, "idle", file]);
  }
  const closing = registry.close("one");
  await expect(registry.files.fork("one", "entry")).rejects.toMatchObject({ kind: "session_closed" });
  const deleting = registry.files.delete("one");
  await expect(registry.files.open({ sessionId: "one" })).rejects.toMatchObject({ kind: "session_not_found" });
  await Promise.all([closing, deleting]);
});

test("a closed session reopens with all its creation options, also by a later daemon and after a failed opening", async () => {
  await using core = await startCore({ profiles: { strict: { tools: ["read"] } } });
  const path = join(core.root, "given");
  mkdirSync(path);
  const session = await core.registry.create(
    {
      ...{ cwd: core.cwd, profile: "strict", excludeTools: ["write"], noTools: "builtin", approve: false, name: "n" },
      ...{ extensions: [path], skills: [path], promptTemplates: [path], model: "scripted/model", thinking: "off" },
      ...{ noExtensions: true, noSkills: true, noPromptTemplates: true, noContextFiles: true },
      ...{ systemPrompt: "Be strict.", appendSystemPrompt: "Very.", labels: { team: "a" }, delegatedBy: "other" },
      ...{ dialogPolicy: { kind: "cancel" }, onForeignWrite: "refuse", idleAfterMs: 0 },
      ...{ optimisation: { cost: { enabled: true } }, pruning: { enabled: true } },
    },
    "one",
  );
  writeFileSync(session.file, message, { flag: "a" });
  const opened = async (covers?: Covers): Promise<object> =>
    closedSession((await core.registry.files.open({ sessionId: "one" }, { covers })).stored);
  const rights = closedSession(session.stored);
  expect(Object.keys(rights.options).length).toBeGreaterThan(14);
  await core.registry.close("one");
  await expect(opened(({ labels }) => labels?.["team"] === "b")).rejects.toMatchObject({ kind: "session_not_found" });
  expect(await opened(({ labels }) => labels?.["team"] === "a")).toEqual(rights);
  await core.registry.close("one");
  await core.restart();
  core.behave("exit-at-start");
  await expect(opened()).rejects.toMatchObject({ kind: "start_failed" });
  core.behave();
  expect(await opened()).toEqual(rights);
  // Options of the new call take precedence.
  await core.registry.close("one");
  const approved = await core.registry.files.open({ sessionId: "one", approve: true, onForeignWrite: "allow" });
  expect(closedSession(approved.stored)).toEqual({
    ...rights,
    ...{ options: { ...rights.options, approve: true }, onForeignWrite: "allow" },
  });
  await core.registry.files.delete("one");
  await expect(opened()).rejects.toMatchObject({ kind: "session_not_found" });
});
