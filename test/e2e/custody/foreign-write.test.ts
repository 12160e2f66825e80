import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import type { SessionHandle } from "../../../client/index.ts";
import { Gate } from "../../../provider/gate.ts";
import { answer, hold } from "../../../provider/reply.ts";
import { leasePath } from "../../../server/pi/lease.ts";
import { startForeignPi } from "../../helpers/foreign-pi.ts";
import { Notifications } from "../../helpers/notifications.ts";
import { type Stage, startStage } from "../../helpers/stage.ts";

interface Entry {
  readonly id: string;
  readonly parentId: string | null;
  readonly type: string;
}

function entriesOf(file: string): Entry[] {
  const lines = readFileSync(file, "utf8").trim().split("\n").slice(1);
  return lines.map((line) => JSON.parse(line) as Entry);
}

/** Entries with two successors. */
function forks(file: string): number {
  const parents = entriesOf(file).map(({ parentId }) => parentId);
  return parents.length - new Set(parents).size;
}

async function fileOf(session: SessionHandle): Promise<string> {
  return (await session.get()).file;
}

async function foreignPrompt(stage: Stage, session: SessionHandle, text: string): Promise<void> {
  await using terminal = await startForeignPi(stage, await fileOf(session));
  await terminal.prompt(text);
}

async function idle(session: SessionHandle): Promise<void> {
  await expect.poll(async () => (await session.get()).state).toBe("idle");
}

test("entries that a terminal pi writes while a session is idle are loaded before the next run, and reported", async () => {
  await using stage = await startStage();
  const session = await stage.session();
  await using told = await Notifications.of(stage.stateDir, session.id);
  await session.promptAndWait("one");
  await session.promptAndWait("two");
  await session.command({ type: "set_session_name", name: "its own entry" });
  await session.promptAndWait("three");
  expect(told.named("session/foreignWrite")).toEqual([]);
  const held = session.push({ customType: "n", content: "held over the reload", deliverAs: "nextTurn" });
  await held.accepted;
  await foreignPrompt(stage, session, "from the terminal");
  await session.promptAndWait("four");
  const { params } = await told.until(({ name }) => name === "session/foreignWrite");
  expect(params).toMatchObject({ action: "reloaded", write: { kind: "grown", divergent: false, during: "idle" } });
  const last = stage.provider.requests.at(-1);
  for (const text of ["one", "from the terminal", "held over the reload", "four"]) {
    expect([text, last?.countText(text, { roles: ["user"] })]).toEqual([text, 1]);
  }
  expect((await held.answered).state).toBe("answered");
  expect(forks(await fileOf(session))).toBe(0);
  await idle(session);
  expect(told.named("session/foreignWrite")).toHaveLength(1);
});

test("after a foreign write, `refuse` prevents runs until session/reload, and `allow` does not", async () => {
  await using stage = await startStage();
  const [strict, lax] = await Promise.all(
    (["refuse", "allow"] as const).map((onForeignWrite) =>
      stage.client.createSession({ cwd: stage.cwd, model: "scripted/model-1", onForeignWrite }),
    ),
  );
  if (strict === undefined || lax === undefined) throw new Error("no session");
  await using told = await Notifications.of(stage.stateDir, strict.id);
  await using toldLax = await Notifications.of(stage.stateDir, lax.id);
  for (const session of [strict, lax]) {
    await session.promptAndWait("one");
    await foreignPrompt(stage, session, "from the terminal");
  }
  for (let times = 0; times < 2; times += 1) {
    await expect(strict.prompt("two")).rejects.toMatchObject({
      kind: "foreign_write",
      data: { write: { kind: "grown", during: "idle", divergent: false } },
    });
  }
  expect(told.named("session/foreignWrite").map(({ params }) => params["action"])).toEqual(["refused"]);
  await lax.promptAndWait("two");
  expect(toldLax.named("session/foreignWrite").map(({ params }) => params["action"])).toEqual(["allowed"]);
  expect(forks(await fileOf(lax))).toBe(1);
  expect((await strict.reload()).state).toBe("hibernated");
  await strict.promptAndWait("three");
  expect(stage.provider.requests.at(-1)?.countText("from the terminal", { roles: ["user"] })).toBe(1);
  expect(forks(await fileOf(strict))).toBe(0);
});

test("a terminal pi that writes during a run is noticed when the run has settled", async () => {
  const gate = new Gate();
  await using stage = await startStage({ provider: { script: [answer("One."), answer(hold(gate), "Two.")] } });
  const session = await stage.session();
  await session.promptAndWait("one");
  await idle(session);
  await using told = await Notifications.of(stage.stateDir, session.id);
  await using terminal = await startForeignPi(stage, await fileOf(session));
  // Both have the same transcript, and both continue from it.
  const own = session.promptAndWait("two");
  await gate.reached;
  await terminal.prompt("from the terminal");
  gate.open();
  await own;
  const { params } = await told.until(({ name }) => name === "session/foreignWrite");
  expect(params).toMatchObject({ action: "noticed", write: { kind: "grown", during: "run" } });
  expect(forks(await fileOf(session))).toBe(1);
});

test("foreign writes to a hibernated session's file are reported when it wakes, and a lease is held only while it is awake", async () => {
  await using stage = await startStage();
  const session = await stage.session();
  await session.promptAndWait("one");
  const file = await fileOf(session);
  await stage.restart(() => expect(() => readFileSync(leasePath(file))).toThrow("ENOENT"));
  const again = stage.client.session(session.id);
  await using told = await Notifications.of(stage.stateDir, session.id);
  await foreignPrompt(stage, again, "from the terminal");
  await again.promptAndWait("two");
  const { params } = await told.until(({ name }) => name === "session/foreignWrite");
  expect(params).toMatchObject({ action: "reloaded", write: { kind: "grown", during: "asleep", divergent: false } });
  expect(JSON.parse(readFileSync(leasePath(file), "utf8"))).toMatchObject({ holder: { pid: process.pid } });
  expect(stage.provider.requests.at(-1)?.countText("from the terminal", { roles: ["user"] })).toBe(1);
  await stage.restart();
  await stage.client.session(session.id).promptAndWait("three");
  expect(told.named("session/foreignWrite")).toHaveLength(1);
});
