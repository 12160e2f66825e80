import { existsSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import type { Delivery, SessionHandle } from "../../client/index.ts";
import { Gate } from "../../provider/gate.ts";
import { answer, delayed, hold, status } from "../../provider/reply.ts";
import { type StageOfTest, shareStage } from "../helpers/shared-stage.ts";
import { startStage } from "../helpers/stage.ts";

/** Makes it possible to compact a short conversation; otherwise it has no effect. */
const compaction = { enabled: true, reserveTokens: 1_000, keepRecentTokens: 10 };
const shared = shareStage({ agent: { settings: { compaction } } });

const states = ({ history }: Delivery): readonly string[] => history.map(({ state }) => state);

/** How many entries of the session's file carry the delivery. */
async function entries(session: SessionHandle, deliveryId: string): Promise<number> {
  const { file } = await session.get();
  // A file that never got a message is deleted when its child has ended.
  const lines = existsSync(file) ? readFileSync(file, "utf8").split("\n") : [];
  return lines.filter((line) => line.includes('"custom_message"') && line.includes(`"${deliveryId}"`)).length;
}

/** A run whose first request waits at a gate. */
async function heldRun(stage: StageOfTest, gate: Gate): Promise<{ session: SessionHandle; run: Promise<unknown> }> {
  const session = await stage.session();
  const run = session.runUntilSettled("begin");
  await gate.reached;
  return { session, run };
}

describe("a push that is cancelled", () => {
  test("while it is held is in no transcript and in no request", async () => {
    const gate = new Gate();
    await using stage = await shared.use({ script: [delayed(hold(gate), answer("Done."))] });
    const { session, run } = await heldRun(stage, gate);
    const push = session.push({ customType: "n", content: "taken back" });
    await push.accepted;
    const { cancelled, delivery } = await stage.client.call("delivery/cancel", { deliveryId: push.id });
    expect(cancelled).toBe(true);
    expect(delivery).toMatchObject({ state: "cancelled", reason: { code: "cancelled" } });
    gate.open();
    await run;
    await session.promptAndWait("go on");
    expect(await entries(session, push.id)).toBe(0);
    expect(stage.provider.requests.some((request) => request.hasText("taken back"))).toBe(false);
    expect((await push.get()).state).toBe("cancelled");
    await expect(push.delivered).rejects.toMatchObject({ delivery: { state: "cancelled" } });
  });

  test("too late reports its current state", async () => {
    await using stage = await shared.use();
    const session = await stage.session();
    const push = session.push({ customType: "n", content: "already there" });
    await push.answered;
    const { cancelled, delivery } = await stage.client.call("delivery/cancel", { deliveryId: push.id });
    expect(cancelled).toBe(false);
    expect(delivery.state).toBe("answered");
  });

  test("while it is parked in the transcript is too late, and a later run carries it", async () => {
    await using stage = await shared.use({ script: [status(400), answer("Both.")] });
    const session = await stage.session();
    const push = session.push({ customType: "n", content: "stands there" });
    await expect(push.delivered).rejects.toMatchObject({ delivery: { state: "parked" } });
    const { cancelled, delivery } = await stage.client.call("delivery/cancel", { deliveryId: push.id });
    expect([cancelled, delivery.state]).toEqual([false, "parked"]);
    await session.promptAndWait("go on");
    expect((await push.answered).state).toBe("answered");
  });

  test("between the death of its pi and the next one is decided by the session file", async () => {
    await using stage = await shared.use();
    const session = await stage.session();
    const pushes = ["one", "two"].map((content) => session.push({ customType: "n", content, deliverAs: "nextTurn" }));
    await Promise.all(pushes.map(({ accepted }) => accepted));
    const [one, two] = pushes as [(typeof pushes)[0], (typeof pushes)[0]];
    await expect.poll(async () => (await two.get()).state).toBe("held");
    const { pid } = await session.get();
    process.kill(pid as number, "SIGKILL");
    await expect.poll(async () => (await session.get()).state).toBe("crashed");
    expect((await stage.client.call("delivery/cancel", { deliveryId: one.id })).cancelled).toBe(true);
    await session.promptAndWait("go on");
    await two.answered;
    expect(await entries(session, one.id)).toBe(0);
    expect(await entries(session, two.id)).toBe(1);
  });

  test("that races with its insertion is cancelled or inserted, never both", async () => {
    await using stage = await shared.use();
    const session = await stage.session();
    const outcomes: string[] = [];
    for (let i = 0; i < 20; i += 1) {
      const push = session.push({ customType: "n", content: `race ${i}`, triggerTurn: false });
      await push.accepted;
      const { cancelled, delivery } = await stage.client.call("delivery/cancel", { deliveryId: push.id });
      expect(await entries(session, push.id)).toBe(cancelled ? 0 : 1);
      outcomes.push(delivery.state);
    }
    for (const state of outcomes) expect(["cancelled", "inserted"]).toContain(state);
    // The inserted push is removed with it; other tests may have the session.
    await session.promptAndWait("go on");
  });
});

describe("a push that expires", () => {
  test("while it is held is cancelled by name", async () => {
    const gate = new Gate();
    await using stage = await shared.use({ script: [delayed(hold(gate), answer("Done."))] });
    const { session, run } = await heldRun(stage, gate);
    const push = session.push({ customType: "n", content: "stale by then", expiresAfterMs: 50 });
    await expect(push.inserted).rejects.toMatchObject({ delivery: { state: "expired", reason: { code: "expired" } } });
    gate.open();
    await run;
    expect(await entries(session, push.id)).toBe(0);
  });

  test("while the daemon is down is dropped by the next one", async () => {
    await using stage = await shared.use();
    const session = await stage.session();
    const push = session.push({ customType: "n", content: "stale", deliverAs: "nextTurn", expiresAfterMs: 300 });
    await push.accepted;
    await stage.restart();
    const delivery = await stage.client.call("delivery/wait", { deliveryId: push.id, until: "inserted" });
    expect(delivery.state).toBe("expired");
    expect(await entries(stage.client.session(session.id), push.id)).toBe(0);
  });

  test("after it was inserted does not expire", async () => {
    const gate = new Gate();
    await using stage = await shared.use({ script: [delayed(hold(gate), answer("Done."))] });
    const session = await stage.session();
    const push = session.push({ customType: "n", content: "in time", expiresAfterMs: 6_000 });
    await gate.reached;
    const { expiresAt } = await push.get();
    await expect.poll(() => Date.now()).toBeGreaterThan((expiresAt as number) + 100);
    gate.open();
    expect((await push.answered).state).toBe("answered");
  });
});

test("clearing the queue drops the pushes that are configured for it, keeps the others, and returns the users' texts", async () => {
  const gate = new Gate();
  await using stage = await shared.use({ script: [delayed(hold(gate), answer("Done.")), answer("More.")] });
  const { session, run } = await heldRun(stage, gate);
  const keep = session.push({ customType: "n", content: "kept" });
  const drop = session.push({ customType: "n", content: "dropped", onClearQueue: "drop" });
  await expect.poll(async () => (await keep.get()).state).toBe("held");
  await session.steer("a user's words");
  const cleared = await stage.client.call("session/clearQueue", { sessionId: session.id });
  expect(cleared.steering).toEqual(["a user's words"]);
  expect(cleared.followUp).toEqual([]);
  expect(cleared.deliveries).toEqual([
    { deliveryId: keep.id, state: "held" },
    { deliveryId: drop.id, state: "dropped", reason: { code: "clear_queue", message: expect.any(String) } },
  ]);
  gate.open();
  await run;
  expect((await keep.answered).state).toBe("answered");
  expect(await entries(session, keep.id)).toBe(1);
  expect(await entries(session, drop.id)).toBe(0);
  expect((await session.get()).lostPrompts).toEqual([]);
});

test("an abort reports its effects on pushes", async () => {
  const gate = new Gate();
  await using stage = await shared.use({ script: [delayed(hold(gate), answer("Never."))] });
  const { session, run } = await heldRun(stage, gate);
  run.catch(() => {});
  const park = session.push({ customType: "n", content: "parked" });
  const drop = session.push({ customType: "n", content: "dropped", onAbort: "drop" });
  const next = session.push({ customType: "n", content: "next", deliverAs: "nextTurn" });
  for (const push of [park, drop, next]) await expect.poll(async () => (await push.get()).state).toBe("held");
  const { aborted, deliveries } = await stage.client.call("session/abort", { sessionId: session.id });
  expect(aborted).toBe(true);
  expect(deliveries).toMatchObject([
    { deliveryId: park.id, state: "parked", reason: { code: "abort" } },
    { deliveryId: drop.id, state: "dropped", reason: { code: "policy" } },
    { deliveryId: next.id, state: "held" },
  ]);
  gate.open();
  // The rest is removed with it; other tests may have the session.
  await session.promptAndWait("go on");
});

test("a push that was left by an abort keeps its place before later ones of its kind, and starts no run by itself", async () => {
  const gate = new Gate();
  await using stage = await shared.use({ script: [delayed(hold(gate), answer("Never."))] });
  const { session, run } = await heldRun(stage, gate);
  run.catch(() => {});
  const first = session.push({ customType: "n", content: "first of two" });
  await first.accepted;
  await session.abort();
  gate.open();
  expect((await first.get()).state).toBe("parked");
  const second = session.push({ customType: "n", content: "second of two", triggerTurn: false });
  await second.inserted;
  const before = stage.provider.requests.length;
  await session.promptAndWait("go on");
  expect(stage.provider.requests.length).toBe(before + 1);
  const text = JSON.stringify(stage.provider.requests.at(-1)?.messages);
  expect(text.indexOf("first of two")).toBeLessThan(text.indexOf("second of two"));
  expect(text.indexOf("first of two")).toBeGreaterThan(0);
});

test("a push with too many failed requests for its history is still known to be in the transcript", async () => {
  const script = Array.from({ length: 36 }, () => status(400));
  await using stage = await shared.use({ script });
  const session = await stage.freshSession();
  const push = session.push({ customType: "n", content: "carried often" });
  await expect(push.delivered).rejects.toMatchObject({ delivery: { state: "parked" } });
  for (let i = 1; i < script.length; i += 1) await session.promptAndWait(`again ${i}`).catch(() => {});
  const parked = await push.get();
  expect(parked.history.some(({ state }) => state === "inserted")).toBe(false);
  expect(parked).toMatchObject({ state: "parked", insertedAt: expect.any(Number) });
  expect((await stage.client.call("delivery/cancel", { deliveryId: push.id })).cancelled).toBe(false);
  const { deliveries } = await stage.client.call("session/close", { sessionId: session.id });
  expect(deliveries).toMatchObject([{ deliveryId: push.id, state: "unknown", reason: { code: "session_closed" } }]);
});

test("a compaction reports the pushes that it removed before any request carried them, and keeps the others", async () => {
  await using stage = await shared.use();
  const session = await stage.freshSession();
  for (const text of ["one", "two"]) await session.promptAndWait(`${text} ${"A long story. ".repeat(100)}`);
  const quiet = { customType: "n", triggerTurn: false };
  const cut = session.push({ ...quiet, content: "cut off" });
  await cut.inserted;
  const kept = session.push({ ...quiet, content: `kept ${"at length ".repeat(200)}` });
  await kept.inserted;
  const held = session.push({ ...quiet, content: "held", deliverAs: "nextTurn" });
  await expect.poll(async () => (await held.get()).state).toBe("held");
  const { deliveries } = await stage.client.call("session/command", {
    sessionId: session.id,
    command: { type: "compact" },
  });
  expect(deliveries).toMatchObject([
    { deliveryId: cut.id, state: "dropped", reason: { code: "compacted" } },
    { deliveryId: kept.id, state: "inserted" },
    { deliveryId: held.id, state: "held" },
  ]);
  await session.promptAndWait("go on");
  expect((await kept.answered).state).toBe("answered");
  expect((await held.answered).state).toBe("answered");
  expect((await cut.get()).state).toBe("dropped");
  const last = stage.provider.requests.at(-1);
  expect([last?.countText("cut off"), last?.countText("held"), last?.hasText("kept at length")]).toEqual([0, 1, true]);
});

describe("a parked push that is sent again", () => {
  test("is carried by a run of its own, without any other message", async () => {
    await using stage = await shared.use({ script: [status(400), answer("Now.")] });
    const session = await stage.freshSession();
    const push = session.push({ customType: "n", content: "once more" });
    await expect(push.delivered).rejects.toMatchObject({ delivery: { state: "parked" } });
    await stage.client.call("delivery/resend", { deliveryId: push.id });
    const answered = await push.answered;
    expect(answered.attempts.map(({ outcome }) => outcome)).toEqual(["failed", "delivered"]);
    const last = stage.provider.requests.at(-1);
    expect(last?.countText("once more", { roles: ["user"] })).toBe(1);
    expect(last?.messages.filter(({ role }) => role === "user")).toHaveLength(1);
    expect(await entries(session, push.id)).toBe(1);
  });

  test("that an abort left held is inserted and delivered", async () => {
    const gate = new Gate();
    await using stage = await shared.use({ script: [delayed(hold(gate), answer("Never.")), answer("Now.")] });
    const { session, run } = await heldRun(stage, gate);
    run.catch(() => {});
    const push = session.push({ customType: "n", content: "held over the abort" });
    await push.accepted;
    await session.abort();
    gate.open();
    expect((await push.get()).state).toBe("parked");
    await stage.client.call("delivery/resend", { deliveryId: push.id });
    expect(states(await push.answered).filter((state, i, all) => state !== "held" || all[i - 1] !== "parked")).toEqual([
      "accepted",
      "held",
      "parked",
      "inserted",
      "prepared",
      "delivered",
      "answered",
    ]);
  });

  test("in a session without a child wakes it", async () => {
    await using stage = await shared.use({ script: [status(400), answer("Now.")] });
    const session = await stage.session();
    const push = session.push({ customType: "n", content: "over a restart" });
    await expect(push.delivered).rejects.toMatchObject({ delivery: { state: "parked" } });
    await stage.restart();
    await stage.client.call("delivery/resend", { deliveryId: push.id });
    const delivery = await stage.client.call("delivery/wait", { deliveryId: push.id, until: "answered" });
    expect(delivery.state).toBe("answered");
  });

  test("that is not parked is refused by name", async () => {
    await using stage = await shared.use();
    const session = await stage.session();
    const push = session.push({ customType: "n", content: "done" });
    await push.answered;
    await expect(stage.client.call("delivery/resend", { deliveryId: push.id })).rejects.toMatchObject({
      kind: "wrong_state",
      data: { delivery: { state: "answered" } },
    });
  });
});

test("deliveries are listed page by page, by session and by state, the newest first", async () => {
  await using stage = await startStage();
  const [one, two] = [await stage.session(), await stage.session()];
  const ids: string[] = [];
  for (let i = 0; i < 5; i += 1) {
    const push = (i % 2 === 0 ? one : two).push({ customType: "n", content: `number ${i}`, deliverAs: "nextTurn" });
    await push.accepted;
    ids.unshift(push.id);
  }
  const idsOf = ({ deliveries }: { deliveries: readonly Delivery[] }) => deliveries.map(({ deliveryId }) => deliveryId);
  expect(idsOf(await stage.client.call("delivery/list", {}))).toEqual(ids);
  const first = await stage.client.call("delivery/list", { limit: 2 });
  expect(idsOf(first)).toEqual(ids.slice(0, 2));
  const second = await stage.client.call("delivery/list", { limit: 3, after: first.next as string });
  expect(idsOf(second)).toEqual(ids.slice(2));
  expect(second.next).toBeUndefined();
  expect(idsOf(await stage.client.call("delivery/list", { sessionId: two.id }))).toEqual([ids[1], ids[3]]);
  await stage.client.call("delivery/cancel", { deliveryId: ids[0] as string });
  expect(idsOf(await stage.client.call("delivery/list", { states: ["cancelled"] }))).toEqual([ids[0]]);
});
