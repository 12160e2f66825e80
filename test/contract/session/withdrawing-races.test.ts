import { describe, expect, test } from "vitest";
import type { Withdrawal } from "../../../server/delivery/tracked.ts";
import type { Session } from "../../../server/session/session.ts";
import { type Core, type Heard, recorder, startCore } from "../../helpers/core.ts";
import { patience } from "../../helpers/patience.ts";

const withdrawal = (as: Withdrawal["as"], code: "cancelled" | "expired" | "clear_queue"): Withdrawal => ({
  kind: "withdrawn",
  at: 1,
  as,
  reason: { code, message: "taken back" },
});
const cancelled = withdrawal("cancelled", "cancelled");

async function session(core: Core, ...behaviours: readonly string[]): Promise<Session> {
  core.behave("tell-frames", ...behaviours);
  return await core.registry.create({ cwd: core.cwd });
}

function accept(core: Core, { sessionId }: Session, deliveryId: string, more: object = {}) {
  return core.tracker.accept({ sessionId, customType: "n", content: "x", deliveryId, ...more });
}

async function kill({ state }: Session): Promise<void> {
  if (state.kind !== "idle" && state.kind !== "running") throw new Error(state.kind);
  process.kill(state.child.pid, "SIGKILL");
  await state.child.cleaned;
}

/** The ids in frames of one kind that the fake pi received. */
const frames = (heard: readonly Heard[], kind: string): readonly unknown[] =>
  heard.filter(({ params }) => params.event?.type === "frame_came" && params.event.kind === kind).map(idsOf);
const idsOf = ({ params }: Heard): unknown => params.event.ids;

/** Makes pi process everything that was written to it. */
async function drained(created: Session): Promise<void> {
  const { state } = created;
  if (state.kind !== "idle" && state.kind !== "running") throw new Error(state.kind);
  await state.child.send({ type: "get_state" });
  await created.scope.run(async () => {});
}

describe("a push that is taken back", () => {
  test("while its start of pi is cancelled with the session does not keep the daemon busy", async () => {
    await using core = await startCore();
    const created = await session(core);
    await kill(created);
    core.behave("mute");
    await accept(core, created, "p");
    void created.pushing.handOver();
    await expect.poll(() => created.state.kind).toBe("starting");
    const closed = core.registry.close(created.sessionId);
    await created.pushing.withdraw(["p"], cancelled);
    await closed;
    expect(core.tracker.get("p").state).toMatch(/^(cancelled|failed)$/);
  });

  test("while its helper is reloaded is not sent to it again", async () => {
    await using core = await startCore();
    const created = await session(core, "reload-on-release");
    const heard = recorder();
    created.subscribe(heard);
    await accept(core, created, "p");
    await created.pushing.handOver();
    await created.pushing.withdraw(["p"], cancelled);
    await drained(created);
    expect(core.tracker.get("p").state).toBe("cancelled");
    expect(frames(heard.heard, "hold").filter((ids) => String(ids).includes("p"))).toEqual([["p"]]);
  });

  test("before it is on disk is reported in the right order", async () => {
    await using core = await startCore();
    const created = await session(core);
    const heard = recorder();
    created.subscribe(heard);
    const accepted = accept(core, created, "p");
    const withdrawn = created.pushing.withdraw(["p"], cancelled);
    await Promise.all([accepted, withdrawn]);
    expect(core.tracker.get("p").state).toBe("cancelled");
    await core.tracker.told();
    const states = heard.heard.flatMap(({ params }) => params.delivery?.state ?? []);
    expect(states).toEqual(["accepted", "cancelled"]);
  });

  test("that a helper may hold, after an invalid reply, is withdrawn by asking the helper", async () => {
    await using core = await startCore();
    const created = await session(core, "nonsense-on-hold", "release-too-late");
    await accept(core, created, "p", { customType: "strange" });
    await created.pushing.handOver();
    await created.pushing.withdraw(["p"], cancelled);
    expect(core.tracker.get("p").state).toBe("inserted");
  });

  test("from a helper that does not report the outcome is refused, and asked for once", async () => {
    await using core = await startCore();
    const created = await session(core, "evade-on-release");
    const heard = recorder();
    created.subscribe(heard);
    await accept(core, created, "p");
    await created.pushing.handOver();
    await expect(created.pushing.withdraw(["p"], cancelled)).rejects.toMatchObject({ kind: "link_failed" });
    expect(frames(heard.heard, "release")).toHaveLength(1);
    expect(core.tracker.get("p").state).toBe("held");
  });

  test("but stays after all keeps its place before later pushes", async () => {
    await using core = await startCore();
    const created = await session(core);
    await kill(created);
    const heard = recorder();
    created.subscribe(heard);
    for (const id of ["before", "p", "after"]) await accept(core, created, id, { deliverAs: "nextTurn" });
    core.behave("tell-frames", "evade-on-release");
    const started = created.awake();
    await expect(created.pushing.withdraw(["p"], cancelled)).rejects.toMatchObject({ kind: "link_failed" });
    await started;
    await drained(created);
    expect(frames(heard.heard, "hold").flat()).toEqual(["before", "p", "after"]);
    expect(core.tracker.get("p").state).toBe("held");
  });

  test("for several reasons at once reports one of them", async () => {
    await using core = await startCore();
    const created = await session(core, "release-later");
    const heard = recorder();
    created.subscribe(heard);
    await accept(core, created, "p", { onClearQueue: "drop" });
    await created.pushing.handOver();
    const { pushing } = created;
    await Promise.all([pushing.withdraw(["p"], cancelled), pushing.expire("p"), pushing.clear()]);
    await core.tracker.told();
    const states = heard.heard.flatMap(({ params }) => params.delivery?.state ?? []);
    expect(states).toHaveLength(3);
    expect(states.slice(0, 2)).toEqual(["accepted", "held"]);
    expect(["cancelled", "expired", "dropped"]).toContain(states[2]);
  });
});

describe("a push whose time is up", () => {
  test("while pi starts is never delivered to it", async () => {
    await using core = await startCore();
    const created = await session(core);
    await kill(created);
    core.behave("tell-frames");
    const heard = recorder();
    created.subscribe(heard);
    await accept(core, created, "p", { expiresAfterMs: 1 });
    const started = created.awake();
    await started;
    await core.tracker.wait("p", "inserted", patience.timeout, new AbortController().signal);
    await drained(created);
    expect(core.tracker.get("p").state).toBe("expired");
    expect(frames(heard.heard, "hold").flat()).not.toContain("p");
  });

  test("is withdrawn by a later attempt when the helper does not answer at first", async () => {
    await using core = await startCore();
    const created = await session(core, "nonsense-on-release");
    const heard = recorder();
    created.subscribe(heard);
    await accept(core, created, "p", { expiresAfterMs: 300, deliverAs: "nextTurn" });
    await created.pushing.handOver();
    await heard.until(({ params }) => params.event?.type === "frame_came" && params.event.kind === "release");
    core.behave();
    await kill(created);
    const { params } = await heard.until((one) => one.params.delivery?.state === "expired");
    expect(params.delivery.reason.code).toBe("expired");
  });
});

test("clearing the queue succeeds if a push could not be withdrawn, so that no text is lost", async () => {
  await using core = await startCore();
  const created = await session(core, "nonsense-on-release");
  await accept(core, created, "p", { onClearQueue: "drop" });
  await created.pushing.handOver();
  await created.pushing.clear();
  expect(core.tracker.get("p").state).toBe("held");
});

test("a push that crashes its pi wakes the session at growing intervals, and never after its expiry", async () => {
  await using core = await startCore();
  const created = await session(core);
  await kill(created);
  core.behave("die-on-hold");
  await accept(core, created, "p");
  const heard = recorder();
  created.subscribe(heard);
  void created.pushing.handOver();
  const crashes = () => heard.heard.filter(({ params }) => params.session?.state === "crashed").length;
  await expect.poll(crashes).toBeGreaterThanOrEqual(3);
  const before = crashes();
  await core.registry.close(created.sessionId);
  expect(before).toBeLessThanOrEqual(4);
  expect(core.tracker.get("p").state).toBe("failed");
  expect(created.state.kind).toBe("closed");
  await created.pushing.handOver();
  expect(created.state.kind).toBe("closed");
});

test("a helper that cannot be reached for new pushes keeps the pushes that it holds", async () => {
  await using core = await startCore();
  const created = await session(core, "nonsense-on-hold");
  await accept(core, created, "held");
  await created.pushing.handOver();
  await accept(core, created, "new", { customType: "strange" });
  // A session that is replaced inside pi leaves its helper unreachable for a while; nothing is given up immediately.
  for (let i = 0; i < 10; i += 1) await created.pushing.handOver();
  expect(core.tracker.get("new")).toMatchObject({ state: "accepted", reason: { code: "not_started" } });
  expect(core.tracker.get("held").state).toBe("held");
  expect(created.state.kind).toBe("idle");
});

test("the reason why a push waited is removed once it is held; the reason of a parked push stays", async () => {
  await using core = await startCore();
  const created = await session(core);
  for (const id of ["one", "two"]) await accept(core, created, id);
  await created.pushing.handOver();
  core.tracker.apply(created.sessionId, "two", { kind: "settled", at: 1, aborted: true, failed: false, held: true });
  const heard = recorder();
  created.subscribe(heard);
  // It is retried directly after the death.
  core.behave("exit-at-start");
  await kill(created);
  await heard.until(({ params }) => params.delivery?.reason?.code === "not_started");
  expect(core.tracker.get("two")).toMatchObject({ state: "parked", reason: { code: "abort" } });
  core.behave();
  await created.pushing.handOver();
  expect(core.tracker.get("one").state).toBe("held");
  expect(core.tracker.get("one").reason).toBeUndefined();
});
