import { existsSync, mkdirSync, readdirSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { limits } from "../../../server/config.ts";
import { leasePath } from "../../../server/pi/lease.ts";
import type { Session } from "../../../server/session/session.ts";
import { type Core, startCore } from "../../helpers/core.ts";

/** Has the session's pi say that another session is in it. Resolves when that pi is gone. */
async function lie(session: Session, hello: object): Promise<void> {
  const child = await session.awake();
  await child.send({ type: "lie", hello });
  await child.cleaned;
}

const ids = (core: Core): string[] => core.registry.all().map(({ sessionId }) => sessionId);

test("a pi that says to have another session, and has not, is ended, and the other's prompts go to a pi of its own", async () => {
  await using core = await startCore();
  const victim = await core.registry.create({ cwd: core.cwd }, "victim");
  const liar = await core.registry.create({ cwd: core.cwd }, "liar");
  await victim.upkeep.hibernate(true);
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

test("a session whose pi lies keeps its file, and starts no other pi on it, until nothing is left of the liar", async () => {
  const child = { ...limits.child, afterEofMs: 500 };
  await using core = await startCore({ limits: { child } });
  const victim = await core.registry.create({ cwd: core.cwd }, "victim");
  core.behave("ignore-eof");
  const session = await core.registry.create({ cwd: core.cwd }, "liar");
  await victim.upkeep.hibernate(true);
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
  await session.upkeep.hibernate(true);
  expect(existsSync(leasePath(session.file))).toBe(false);
});

test("no session is made of a file that is not among pi's, nor one beyond those that may be", async () => {
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
