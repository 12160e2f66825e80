import { expect, test } from "vitest";
import { limits } from "../../../server/configuration/limits.ts";
import type { Session } from "../../../server/session/session.ts";
import { type Core, recorder, startCore } from "../../helpers/core.ts";

const prompt = (to: Session) => to.prompting.prompt({ text: "hello", ifRunning: "refuse" });

async function kill(session: Session): Promise<void> {
  const { state } = session;
  if (state.kind !== "idle" && state.kind !== "running") throw new Error(`It is ${state.kind}.`);
  process.kill(state.child.pid, "SIGKILL");
  await state.child.exited;
}

const create = (core: Core, ...behaviours: string[]) => {
  core.behave(...behaviours);
  return core.registry.create({ cwd: core.cwd });
};

test("a session whose pi dies during a run is restarted and idle without a request", async () => {
  await using core = await startCore();
  const session = await create(core, "keep-running");
  await prompt(session);
  await kill(session);
  await expect.poll(() => session.info()).toMatchObject({ state: "idle", generation: 2, restarts: { failures: 1 } });
});

test("a session whose pi dies while idle waits for the next call, unless a subscriber wants it awake", async () => {
  await using core = await startCore();
  const [lazy, wanted] = [await create(core), await create(core)];
  wanted.supervisor.require(recorder(), true);
  await Promise.all([kill(lazy), kill(wanted)]);
  await expect.poll(() => wanted.info()).toMatchObject({ state: "idle", generation: 2 });
  expect(lazy.info()).toMatchObject({ state: "crashed", generation: 1, exit: { signal: "SIGKILL", expected: false } });
  expect(lazy.info().restarts).toBeUndefined();
  await prompt(lazy);
  expect(lazy.info().generation).toBe(2);
});

test("a pi that no longer starts is retried with pauses, and a prompt then reports why it does not start", async () => {
  await using core = await startCore();
  const session = await create(core, "keep-running");
  await prompt(session);
  core.behave("exit-at-start");
  await kill(session);
  await expect.poll(() => session.info().restarts?.failures).toBeGreaterThanOrEqual(3);
  const { state, restarts } = session.info();
  expect([state, typeof restarts?.nextAt]).toEqual(["crashed", "number"]);
  await expect(prompt(session)).rejects.toMatchObject({ kind: "start_failed" });
  core.behave();
  await prompt(session);
  expect(session.state.kind).not.toBe("crashed");
});

test("a suspended pi is reported as unresponsive, keeps its child, and recovers when it responds", async () => {
  const soon = { probeAfterMs: 0, quietRunMs: 0, unresponsiveAfterMs: 0 };
  await using core = await startCore({
    limits: { responsiveness: soon, child: { ...limits.child, maxStdinBacklogBytes: 100_000 } },
  });
  const session = await create(core);
  const heard = recorder();
  session.subscribe(heard);
  const child = await session.awake();
  process.kill(child.pid, "SIGSTOP");
  const echo = (text: string) => child.send({ type: "echo", text });
  const waiting = echo("x");
  for (let i = 0; i < 3; i += 1) await core.registry.look();
  expect(session.info()).toMatchObject({ state: "idle", unresponsive: { since: expect.any(Number) } });
  await heard.until(({ params }) => params.session?.unresponsive !== undefined);
  // The backlog of a suspended pi is bounded: a pipe takes some, then the daemon refuses more.
  const more = Array.from({ length: 40 }, () => echo("x".repeat(10_000)).catch(({ kind }) => kind));
  expect(await Promise.race(more)).toBe("overloaded");
  await core.registry.look(performance.now() + 1_000_000);
  expect(child.state.kind).toBe("ready");
  process.kill(child.pid, "SIGCONT");
  expect((await waiting).success).toBe(true);
  await Promise.all(more);
  await core.registry.look();
  expect(session.info().unresponsive).toBeUndefined();
});

test("a run that is active when the daemon ends may finish within the drain time, and no later", async () => {
  await using core = await startCore({ limits: { drainMs: 300 } });
  const [quick, slow] = [await create(core, "keep-running"), await create(core, "keep-running")];
  const heard = recorder();
  quick.subscribe(heard);
  slow.control.acquire({ by: { clientId: "c" }, ttlMs: 60_000, takeOver: false, policy: undefined });
  await Promise.all([prompt(quick), prompt(slow)]);
  const shutdown = core.registry.shutdown();
  await expect(prompt(quick)).rejects.toMatchObject({ kind: "shutting_down" });
  await quick.prompting.abort();
  await shutdown;
  expect([quick.state.kind, slow.state.kind]).toEqual(["hibernated", "hibernated"]);
  // The store may be closed when a lease would expire.
  expect(slow.control.state).toEqual({ policy: "shared" });
  const states = heard.heard.filter(({ params }) => params.session).map(({ params }) => params.session.state);
  const changes = states.filter((state, index) => state !== states[index - 1]);
  expect(changes.slice(-2)).toEqual(["idle", "hibernated"]);
});
