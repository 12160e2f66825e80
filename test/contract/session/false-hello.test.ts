import {
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { expect, test } from "vitest";
import { limits } from "../../../server/configuration/limits.ts";
import { leasePath } from "../../../server/pi/lease.ts";
import type { Session } from "../../../server/session/session.ts";
import { type Core, recorder, startCore } from "../../helpers/core.ts";

/** Makes the session's pi claim to hold another session. Resolves when that pi is gone, or a session has it. */
async function lie(session: Session, hello: object, isConfirmed = false): Promise<void> {
  const child = await session.awake();
  await child.send({ type: "lie", hello, isConfirmed });
  const next = session.succession.successor?.catch(() => child.cleaned);
  await Promise.race([child.cleaned, next ?? child.cleaned]);
}

const ids = (core: Core): string[] => core.registry.all().map(({ sessionId }) => sessionId);

test("a pi that falsely claims to hold another session is ended, and that session's prompts go to a pi of its own", async () => {
  await using core = await startCore();
  const victim = await core.registry.create({ cwd: core.cwd }, "victim");
  const liar = await core.registry.create({ cwd: core.cwd }, "liar");
  await victim.supervisor.hibernate(true);
  const { pid } = liar.info();
  const child = await liar.awake();
  const lying = child.send({ type: "lie", hello: { sessionId: "victim", sessionFile: victim.file } });
  await expect.poll(() => liar.state.kind).toBe("hibernated");
  await victim.prompting.prompt({ text: "for the victim", ifRunning: "refuse" });
  await lying;
  await child.cleaned;
  await expect(victim.succession.taken).rejects.toMatchObject({ kind: "link_failed", data: { reason: "false_hello" } });
  expect(victim.info().pid).not.toBe(pid);
  expect(["idle", "running"]).toContain(victim.state.kind);
});

test("reports of a pi in the name of a session that it does not hold reach neither that session nor its pushes", async () => {
  await using core = await startCore();
  const victim = await core.registry.create({ cwd: core.cwd }, "victim");
  const liar = await core.registry.create({ cwd: core.cwd }, "liar");
  const push = { sessionId: "victim", customType: "n", content: "x", deliveryId: "p", deliverAs: "nextTurn" } as const;
  await core.tracker.accept(push);
  await victim.pushing.handOver();
  await victim.supervisor.hibernate(true);
  const { name } = victim.info();
  const heard = recorder();
  victim.subscribe(heard);
  const child = await liar.awake();
  const at = Date.now();
  const then = {
    frames: [
      { kind: "inserted", at, deliveryIds: ["p"] },
      { kind: "prepared", at, requestId: "r", deliveryIds: ["p"] },
      { kind: "verdict", at, requestId: "r", outcome: "delivered", evidence: "headers", status: 200 },
      { kind: "notice", at, name: "session/navigated", data: { from: null, to: null } },
    ],
    records: [
      { type: "agent_start" },
      { type: "session_info_changed", name: "forged" },
      { type: "message_end", message: { role: "assistant", content: [{ type: "text", text: "Forged." }] } },
    ],
  };
  await child.send({ type: "lie", hello: { sessionId: "victim", sessionFile: victim.file }, then });
  await expect(victim.succession.taken).rejects.toMatchObject({ data: { reason: "false_hello" } });
  await child.cleaned;
  expect(core.tracker.get("p").history.map(({ state }) => state)).toEqual(["accepted", "held"]);
  expect([victim.info().state, victim.info().name]).toEqual(["hibernated", name]);
  expect(heard.heard.filter(({ method }) => method !== "session/updated")).toEqual([]);
});

test("a session whose pi lies keeps its file, and starts no other pi on it until no process of that pi is left", async () => {
  const child = { ...limits.child, afterEofMs: 500 };
  await using core = await startCore({ limits: { child } });
  const victim = await core.registry.create({ cwd: core.cwd }, "victim");
  core.behave("ignore-eof");
  const session = await core.registry.create({ cwd: core.cwd }, "liar");
  await victim.supervisor.hibernate(true);
  const liar = await session.awake();
  let isGone = false;
  const gone = liar.cleaned.then(() => {
    isGone = true;
  });
  const lying = liar.send({ type: "lie", hello: { sessionId: "victim", sessionFile: victim.file } });
  lying.catch(() => {});
  await expect.poll(() => session.state.kind).toBe("hibernated");
  const next = session.awake();
  await expect(victim.succession.taken).rejects.toMatchObject({ data: { reason: "false_hello" } });
  expect(isGone || existsSync(leasePath(session.file))).toBe(true);
  expect((await next).pid).not.toBe(liar.pid);
  expect(isGone).toBe(true);
  await gone;
  expect(existsSync(leasePath(session.file))).toBe(true);
  await session.supervisor.hibernate(true);
  expect(existsSync(leasePath(session.file))).toBe(false);
});

test("no session is created from a file outside pi's session directories, or above the limit of sessions", async () => {
  await using core = await startCore({ limits: { maxSessions: 2 } });
  const session = await core.registry.create({ cwd: core.cwd }, "one");
  const directory = dirname(session.file);
  const outside = join(core.root, "outside");
  mkdirSync(outside);
  symlinkSync(outside, join(directory, "link"));
  for (const sessionFile of [
    join(outside, "a.jsonl"),
    join(directory, "link", "a.jsonl"),
    join(directory, "..", "..", "..", "a.jsonl"),
    join(directory, "a.json"),
    "a.jsonl",
  ]) {
    await lie(session, { sessionId: "new", sessionFile });
    expect([sessionFile, ids(core)]).toEqual([sessionFile, ["one"]]);
  }
  await core.registry.create({ cwd: core.cwd }, "two");
  await lie(session, { sessionId: "new", sessionFile: join(directory, "a.jsonl") });
  expect(ids(core)).toEqual(["two", "one"]);
  expect(readdirSync(outside)).toEqual([]);
});

test("no session is created from a file that another session has or had, whichever path leads to it", async () => {
  await using core = await startCore();
  const victim = await core.registry.create({ cwd: core.cwd }, "victim");
  writeFileSync(victim.file, message, { flag: "a" });
  const unwritten = await core.registry.create({ cwd: core.cwd }, "unwritten");
  const session = await core.registry.create({ cwd: core.cwd }, "liar");
  for (const one of [victim, unwritten]) await one.supervisor.hibernate(true);
  expect([existsSync(victim.file), existsSync(unwritten.file)]).toEqual([true, false]);
  const directory = dirname(victim.file);
  const at = (name: string): string => join(directory, name);
  const foreign = at("foreign.jsonl");
  writeFileSync(foreign, header("foreign", core.cwd));
  writeFileSync(at("two-names.jsonl"), header("hard", core.cwd));
  linkSync(at("two-names.jsonl"), at("hard.jsonl"));
  symlinkSync(victim.file, at("soft.jsonl"));
  symlinkSync(directory, at("around"));
  mkdirSync(at("directory.jsonl"));
  const text = readFileSync(victim.file, "utf8");
  const taken = [
    ["new", victim.file],
    ["new", at(`around/../around/${basename(victim.file)}`)],
    ["new", at("soft.jsonl")],
    ["new", foreign],
    ["hard", at("hard.jsonl")],
    ["new", at("directory.jsonl")],
    // The file is gone, but the path still belongs to the session.
    ["new", unwritten.file],
    ["new", at(`around/${basename(unwritten.file)}`)],
    ["new", unwritten.file.replace("unwritten", "UNWRITTEN")],
  ] as const;
  for (const [sessionId, sessionFile, isConfirmed] of [
    ...taken.map((named) => [...named, false] as const),
    // An extension can also change what pi answers when it is asked for its session.
    ...taken.map((named) => [...named, true] as const),
    // Only pi contradicts these two.
    ["foreign", foreign, false],
    ["new", at("nothing.jsonl"), false],
  ] as const) {
    await lie(session, { sessionId, sessionFile }, isConfirmed);
    await session.awake();
    expect([sessionFile, ids(core)]).toEqual([sessionFile, ["liar", "unwritten", "victim"]]);
  }
  expect([readFileSync(victim.file, "utf8"), existsSync(foreign)]).toEqual([text, true]);
  expect(readdirSync(directory).filter((name) => name.endsWith(".lease"))).toEqual([basename(leasePath(session.file))]);
});

test("a session whose file was replaced by another session's starts no pi", async () => {
  await using core = await startCore();
  const victim = await core.registry.create({ cwd: core.cwd }, "victim");
  const session = await core.registry.create({ cwd: core.cwd }, "session");
  writeFileSync(session.file, message, { flag: "a" });
  await session.supervisor.hibernate(true);
  writeFileSync(session.file, readFileSync(victim.file));
  await session.reload();
  await expect(session.awake()).rejects.toMatchObject({
    kind: "session_file_unusable",
    data: { reason: "other_session" },
  });
  rmSync(session.file);
  mkdirSync(session.file);
  await expect(session.awake()).rejects.toMatchObject({ data: { reason: "not_a_file" } });
  rmSync(session.file, { recursive: true });
});

test("of two sessions that an earlier version stored with one file, the later one is closed", async () => {
  await using core = await startCore();
  const victim = await core.registry.create({ cwd: core.cwd }, "victim");
  writeFileSync(victim.file, message, { flag: "a" });
  await core.store({ ...victim.stored, sessionId: "false", isOpened: true, createdAt: victim.stored.createdAt + 1 });
  await core.restart();
  expect(ids(core)).toEqual(["victim"]);
  expect(existsSync(victim.file)).toBe(true);
  await core.restart();
  expect(ids(core)).toEqual(["victim"]);
});

const header = (id: string, cwd: string): string =>
  `${JSON.stringify({ type: "session", version: 3, id, timestamp: new Date(0).toISOString(), cwd })}\n`;

const message = `${JSON.stringify({ type: "message", id: "a", parentId: null, message: { role: "user", content: "Hi." } })}\n`;
