import { existsSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { WireError } from "../../../protocol/errors.ts";
import { lifeLimits, limits } from "../../../server/configuration/limits.ts";
import type { RegistryOptions } from "../../../server/session/registry.ts";
import type { Session } from "../../../server/session/session.ts";
import { type Core, recorder, startCore } from "../../helpers/core.ts";

const prompt = (to: Session, text = "hello") => to.prompting.prompt({ text, ifRunning: "refuse" });

const child = ({ state }: Session) => {
  if (state.kind !== "idle" && state.kind !== "running") throw new Error(`It is ${state.kind}.`);
  return state.child;
};

async function settled(session: Session): Promise<void> {
  await prompt(session);
  await session.settled();
}

/** A time at which every session has been idle for longer than its limit. */
const late = () => performance.now() + 1_000_000;

const occupancy = (changes: Partial<RegistryOptions["limits"]["occupancy"]>) => ({
  limits: { occupancy: { ...lifeLimits({}).occupancy, ...changes } },
});

test("an idle session's child is ended gracefully after its time limit, and the next prompt goes to another child", async () => {
  await using core = await startCore();
  const session = await core.registry.create({ cwd: core.cwd, idleAfterMs: 600_000 });
  const heard = recorder();
  session.subscribe(heard);
  await settled(session);
  const { pid } = child(session);
  await core.registry.look(performance.now() + 500_000);
  expect(session.info()).toMatchObject({ state: "idle", pid, idleAfterMs: 600_000 });
  await core.registry.look(performance.now() + 700_000);
  const { restarts, unresponsive, pid: none, exit } = session.info();
  expect([restarts, unresponsive, none]).toEqual([undefined, undefined, undefined]);
  expect(exit).toMatchObject({ expected: true, code: 0 });
  expect(await prompt(session)).toMatchObject({ disposition: "started" });
  await session.settled();
  const states = heard.heard.filter(({ params }) => params.session).map(({ params }) => params.session.state);
  expect(states.filter((state, i) => state !== states[i - 1])).toEqual([
    "running",
    "idle",
    "hibernated",
    "starting",
    "idle",
    "running",
    "idle",
  ]);
  expect(heard.heard.map(({ params }) => params.seq)).toEqual(
    heard.heard.map((_, i) => heard.heard[0]?.params.seq + i),
  );
});

test("a session that is configured to keep its child forever keeps it", async () => {
  await using core = await startCore();
  const session = await core.registry.create({ cwd: core.cwd, idleAfterMs: 0 });
  await core.registry.look(late());
  expect(session.state.kind).toBe("idle");
});

test("a session's pi is not started more often than its rate allows; pushes wait, and other sessions start theirs", async () => {
  await using core = await startCore({ limits: { rates: { windowMs: 600_000, maxWakes: 2 } } });
  const [session, other] = [
    await core.registry.create({ cwd: core.cwd }),
    await core.registry.create({ cwd: core.cwd }),
  ];
  await session.supervisor.hibernate(true);
  await session.awake();
  await session.supervisor.hibernate(true);
  await expect(session.awake()).rejects.toMatchObject({
    kind: "overloaded",
    data: { retryAfterMs: expect.any(Number) },
  });
  await expect(prompt(session)).rejects.toMatchObject({ kind: "overloaded" });
  expect(session.info()).toMatchObject({ state: "hibernated", generation: 2 });
  await core.tracker.accept({ sessionId: session.sessionId, customType: "n", content: "x", deliveryId: "p" });
  await session.pushing.handOver();
  expect(core.tracker.get("p")).toMatchObject({ state: "accepted", reason: { code: "not_started" } });
  await other.supervisor.hibernate(true);
  expect((await other.awake()).state.kind).toBe("ready");
});

test("wakes that start no pi do not count towards the start rate, and failed starts do", async () => {
  await using core = await startCore({ limits: { rates: { windowMs: 600_000, maxWakes: 3 } } });
  const cwd = join(core.cwd, "project");
  mkdirSync(cwd);
  const session = await core.registry.create({ cwd });
  await session.supervisor.hibernate(false);
  rmSync(cwd, { recursive: true });
  const kinds: string[] = [];
  const wake = (): Promise<unknown> =>
    session.awake("reading").then(
      () => kinds.push("awake"),
      ({ kind }) => kinds.push(kind),
    );
  for (let i = 0; i < 4; i += 1) await wake();
  mkdirSync(cwd);
  core.behave("exit-at-start");
  await wake();
  core.behave();
  for (let i = 0; i < 2; i += 1) {
    await wake();
    await session.supervisor.hibernate(true);
  }
  expect(kinds).toEqual([...Array(4).fill("cwd_invalid"), "start_failed", "awake", "overloaded"]);
});

test("a session file that never got a message is deleted with the child and recreated for the next one", async () => {
  await using core = await startCore();
  const session = await core.registry.create({ cwd: core.cwd });
  await session.supervisor.hibernate(false);
  expect(existsSync(session.file)).toBe(false);
  await prompt(session);
  expect(existsSync(session.file)).toBe(true);
});

test("prompts, commands and pushes that arrive while the child is ending wait for it and go to another one", async () => {
  await using core = await startCore({ limits: { child: { ...limits.child, afterEofMs: 200 } } });
  core.behave("ignore-eof");
  const session = await core.registry.create({ cwd: core.cwd });
  const former = child(session);
  const ending = session.supervisor.hibernate(false);
  await expect.poll(() => session.state.kind).toBe("hibernated");
  expect(former.state.kind).not.toBe("exited");
  await core.tracker.accept({ sessionId: session.sessionId, customType: "n", content: "x", deliveryId: "p" });
  const [prompted, , answered] = await Promise.all([
    prompt(session),
    session.pushing.handOver(),
    session.awake().then((next) => next.send({ type: "echo" })),
    ending,
  ]);
  expect([former.state.kind, prompted.disposition, answered.success]).toEqual(["exited", "started", true]);
  expect(session.info().generation).toBe(2);
  expect(core.tracker.get("p").state).toBe("held");
});

test("closing a session or its daemon waits for a child that is ending", async () => {
  await using core = await startCore({ limits: { child: { ...limits.child, afterEofMs: 200 } } });
  core.behave("ignore-eof");
  const [one, other] = [await core.registry.create({ cwd: core.cwd }), await core.registry.create({ cwd: core.cwd })];
  const [first, second] = [child(one), child(other)];
  const endings = [one, other].map((session) => session.supervisor.hibernate(true));
  await core.registry.close(one.sessionId);
  expect(first.state.kind).toBe("exited");
  const waking = other.awake().catch((error: WireError) => error.kind);
  await core.registry.shutdown();
  expect([second.state.kind, await waking, other.state.kind]).toEqual(["exited", "shutting_down", "hibernated"]);
  await Promise.all(endings);
});

interface Keeper {
  readonly reason: string;
  readonly behaviour?: string;
  prepare(session: Session, core: Core): Promise<unknown>;
}

const keepers: readonly Keeper[] = [
  { reason: "running", behaviour: "keep-running", prepare: (session) => prompt(session) },
  { reason: "running", behaviour: "works-unseen", prepare: async () => {} },
  { reason: "background", behaviour: "has-pending", prepare: (session) => settled(session) },
  {
    reason: "calls",
    behaviour: "ignore-abort",
    prepare: async (session) =>
      void child(session)
        .send({ type: "abort" })
        .catch(() => {}),
  },
  {
    reason: "deliveries",
    prepare: async (session, core) => {
      await core.tracker.accept({ sessionId: session.sessionId, customType: "n", content: "x" });
      await session.pushing.handOver();
    },
  },
  {
    reason: "subscription",
    prepare: async (session) => {
      session.supervisor.require(recorder(), true);
      await session.awake();
    },
  },
];

test.each(keepers)(
  "a child is kept while there is a reason ($reason, $behaviour), unless it is ended by force",
  async ({ reason, behaviour = "", prepare }) => {
    await using core = await startCore();
    core.behave(behaviour);
    const session = await core.registry.create({ cwd: core.cwd });
    await prepare(session, core);
    const { pid } = child(session);
    await core.registry.look(late());
    await expect(session.supervisor.hibernate(false)).rejects.toMatchObject({ kind: "session_busy", data: { reason } });
    expect(session.info().pid).toBe(pid);
    await session.supervisor.hibernate(true);
    expect(session.info()).toMatchObject({ state: "hibernated", generation: 1 });
  },
);

test("a subscriber that keeps the session awake wakes it, and lets it hibernate when it leaves", async () => {
  await using core = await startCore();
  const session = await core.registry.create({ cwd: core.cwd });
  await session.supervisor.hibernate(false);
  const gone = new AbortController();
  session.supervisor.require({ id: "s", gone: gone.signal }, true);
  await expect.poll(() => session.state.kind).toBe("idle");
  await core.registry.look(late());
  expect(session.state.kind).toBe("idle");
  gone.abort();
  await core.registry.look(late());
  expect(session.state.kind).toBe("hibernated");
});

test("a push that may wait for a prompt lets its session hibernate, and follows the prompt that wakes it", async () => {
  await using core = await startCore();
  const session = await core.registry.create({ cwd: core.cwd });
  const { sessionId } = session;
  await core.tracker.accept({ sessionId, customType: "n", content: "x", deliveryId: "p", deliverAs: "nextTurn" });
  await session.pushing.handOver();
  expect(core.tracker.get("p").state).toBe("held");
  await core.registry.look(late());
  expect([session.state.kind, core.tracker.get("p").state]).toEqual(["hibernated", "held"]);
  await prompt(session);
  expect(core.tracker.get("p").state).toBe("held");
});

test("at the limit of children, the least recently used idle child ends to make room", async () => {
  await using core = await startCore(occupancy({ maxChildren: 2 }));
  const create = () => core.registry.create({ cwd: core.cwd });
  const [a, b] = [await create(), await create()];
  await settled(a);
  const c = await create();
  expect([a, b, c].map(({ state }) => state.kind)).toEqual(["idle", "hibernated", "idle"]);
  await Promise.all([settled(b), settled(c)]);
  expect([a, b, c].map(({ state }) => state.kind)).toEqual(["hibernated", "idle", "idle"]);
});

test("when all children are busy a start waits for one, and is refused by name when none becomes free", async () => {
  const bounds = occupancy({ maxChildren: 1, placeTimeoutMs: 1 });
  await using core = await startCore(bounds);
  core.behave("keep-running");
  const busy = await core.registry.create({ cwd: core.cwd });
  await prompt(busy);
  await expect(core.registry.create({ cwd: core.cwd })).rejects.toMatchObject({
    kind: "overloaded",
    data: { retryAfterMs: expect.any(Number), maxChildren: 1 },
  });
  Object.assign(bounds.limits.occupancy, { placeTimeoutMs: 120_000 });
  const [created] = await Promise.all([core.registry.create({ cwd: core.cwd }), busy.prompting.abort()]);
  expect([busy.state.kind, created.state.kind]).toEqual(["hibernated", "idle"]);
});

test("idle children hibernate when children use too much memory; busy ones do not", async () => {
  await using core = await startCore(occupancy({ maxChildrenBytes: 1, weighEveryMs: 0 }));
  const idle = [await core.registry.create({ cwd: core.cwd }), await core.registry.create({ cwd: core.cwd })];
  core.behave("keep-running");
  const busy = await core.registry.create({ cwd: core.cwd });
  await prompt(busy);
  await core.registry.look();
  expect([...idle, busy].map(({ state }) => state.kind)).toEqual(["hibernated", "hibernated", "running"]);
});
