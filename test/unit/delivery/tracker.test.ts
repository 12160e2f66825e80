import { pino } from "pino";
import { describe, expect, test, vi } from "vitest";
import type { Delivery } from "../../../protocol/delivery.ts";
import type { WireError } from "../../../protocol/errors.ts";
import { DeliveryTracker } from "../../../server/delivery/tracker.ts";
import { Database } from "../../../server/store/database.ts";
import { DeliveryStore } from "../../../server/store/deliveries.ts";

const at = 1;
const never = new AbortController().signal;

function track(database = new Database(":memory:", () => {}), isGone = (_sessionId: string): boolean => false) {
  const changes: Delivery[] = [];
  const store = new DeliveryStore(database);
  const open = () =>
    new DeliveryTracker({
      store,
      maxPushBytes: 1_000,
      maxOpenPerSession: 100,
      maxOpenBytesPerSession: 60_000,
      maxSettledInMemory: 2,
      maxSettledBytesInMemory: 10_000,
      log: pino({ level: "silent" }),
      isGone,
      onChange: (delivery) => changes.push(delivery),
    });
  return { tracker: open(), again: open, changes, database };
}

const push = (more: object = {}) => ({ sessionId: "s", customType: "t", content: "hello", deliveryId: "d", ...more });

const kindOf = (attempt: Promise<unknown>): Promise<string> =>
  attempt.then(
    () => "success",
    (error: WireError) => error.kind,
  );

function deliver(tracker: DeliveryTracker, id = "d"): void {
  tracker.receive("s", { kind: "inserted", at, deliveryIds: [id] });
  tracker.receive("s", { kind: "prepared", at, requestId: "r", deliveryIds: [id] });
  tracker.receive("s", {
    kind: "verdict",
    at,
    requestId: "r",
    outcome: "delivered",
    evidence: "headers",
    payload: { [id]: "confirmed" },
  });
}

describe("DeliveryTracker", () => {
  test("marks each held push as waiting for the run's dialog, including later ones, until the dialog ends", async () => {
    const { tracker, again, changes } = track();
    const codes = () => ["d", "late"].map((id) => tracker.find(id)?.reason?.code);
    await tracker.accept(push());
    tracker.apply("s", "d", { kind: "held", at });
    tracker.runWaits("s", true);
    await tracker.accept(push({ deliveryId: "late" }));
    tracker.apply("s", "late", { kind: "held", at });
    expect(codes()).toEqual(["dialog", "dialog"]);
    tracker.runWaits("other", false);
    expect(codes()).toEqual(["dialog", "dialog"]);
    tracker.runWaits("s", false);
    expect(codes()).toEqual([undefined, undefined]);
    await tracker.told();
    expect(changes.map(({ deliveryId, state, reason }) => [deliveryId, state, reason?.code])).toContainEqual([
      "d",
      "held",
      "dialog",
    ]);
    tracker.runWaits("s", true);
    await tracker.told();
    tracker.close();
    const { state, reason } = again().find("d") as Delivery;
    expect([state, reason]).toEqual(["held", undefined]);
  });

  test("tells the first 200 characters of a push, and the whole of it on request, also after a restart", async () => {
    const { tracker, again } = track();
    const text = `${"a".repeat(199)}\u{1f600}${"b".repeat(50)}`;
    await tracker.accept(push({ content: text }));
    const image = { type: "image", data: "AA==", mimeType: "image/png" };
    await tracker.accept(push({ deliveryId: "blocks", content: [{ type: "text", text: "one" }, image] }));
    await tracker.accept(push({ deliveryId: "image", content: [image] }));
    await tracker.told();
    tracker.close();
    const later = again();
    expect(["d", "blocks", "image"].map((id) => later.get(id).preview)).toEqual(["a".repeat(199), "one", ""]);
    expect(later.pushed("d").content).toBe(text);
    expect(() => later.pushed("none")).toThrow('There is no delivery "none".');
  });

  test("refuses a number in the details that JSON cannot represent, and names its path", async () => {
    const { tracker } = track();
    const details = JSON.parse('{"a~":[1,{"b/c":1e400}],"kept":[1e308,-0.5,null]}');
    await expect(tracker.accept(push({ details }))).rejects.toMatchObject({
      kind: "invalid_params",
      data: { findings: [{ path: "/details/a~0/1/b~1c" }] },
    });
  });

  test("stores accepted deliveries on disk", async () => {
    const { tracker, again } = track();
    await tracker.accept(push());
    expect(again().get("d")).toEqual(tracker.get("d"));
    expect(again().toHold("s")).toMatchObject([
      { deliveryId: "d", content: "hello", deliverAs: "steer", triggerTurn: true },
    ]);
  });

  test("keeps the order of acceptance across daemons, whatever the ids and the clock", async () => {
    const { tracker, again } = track();
    const clock = vi.spyOn(Date, "now");
    for (const [deliveryId, now] of [
      ["c", 5],
      ["b", 5],
      ["a", 5],
      ["set-back", 1],
    ] as const) {
      clock.mockReturnValue(now);
      await tracker.accept(push({ deliveryId }));
    }
    clock.mockRestore();
    tracker.apply("s", "c", { kind: "held", at });
    await tracker.told();
    const inOrder = ["c", "b", "a", "set-back"];
    expect(
      again()
        .toHold("s")
        .map(({ deliveryId }) => deliveryId),
    ).toEqual(inOrder);
    const { deliveries, next } = await again().list({ limit: 2 });
    const rest = await again().list({ after: next as string });
    expect([...deliveries, ...rest.deliveries].map(({ deliveryId }) => deliveryId)).toEqual(inOrder.toReversed());
  });

  test("stores that a request carries a push before it reports so, because the transcript does not say it", async () => {
    const { tracker, again, changes } = track();
    await tracker.accept(push());
    tracker.receive("s", { kind: "inserted", at, deliveryIds: ["d"] });
    tracker.receive("s", { kind: "prepared", at, requestId: "r", deliveryIds: ["d"] });
    expect(changes.at(-1)?.state).toBe("accepted");
    await tracker.told();
    expect(changes.at(-1)?.state).toBe("prepared");
    expect(again().get("d")).toEqual(changes.at(-1));
  });

  test("returns the existing delivery for the same id and content, also concurrently, in any order of keys", async () => {
    const { tracker, changes } = track();
    const [first, second] = await Promise.all([
      tracker.accept(push({ details: { a: 1, b: 2 } })),
      tracker.accept(push({ details: { b: 2, a: 1 } })),
    ]);
    expect(second).toEqual(first);
    expect(changes).toHaveLength(1);
    deliver(tracker);
    expect((await tracker.accept(push({ details: { a: 1, b: 2 } }))).state).toBe("delivered");
  });

  test.each([[{ content: "other" }], [{ sessionId: "other" }], [{ deliverAs: "nextTurn" }], [{ details: { x: 1 } }]])(
    "refuses the same id with %j as a conflict, also when the first is settled and after a restart",
    async (other) => {
      const { tracker, again } = track();
      await tracker.accept(push());
      expect(await kindOf(tracker.accept(push(other)))).toBe("conflict");
      deliver(tracker);
      tracker.receive("s", { kind: "answered", at, requestId: "r", deliveryIds: ["d"] });
      expect(await kindOf(tracker.accept(push(other)))).toBe("conflict");
      expect(await kindOf(again().accept(push(other)))).toBe("conflict");
    },
  );

  test("accepts nothing that it could not store, and can accept it later", async () => {
    const { tracker, database, changes } = track();
    const pages = database.prepare("PRAGMA page_count").get() as { page_count: number };
    database.prepare(`PRAGMA max_page_count = ${pages.page_count}`).get();
    const big = push({ content: "x".repeat(700) });
    const outcomes: string[] = [];
    for (let i = 0; i < 60; i += 1) outcomes.push(await kindOf(tracker.accept({ ...big, deliveryId: `d${i}` })));
    const refused = outcomes.indexOf("store_failed");
    expect(refused, outcomes.join()).toBeGreaterThan(-1);
    expect(await kindOf(Promise.resolve().then(() => tracker.get(`d${refused}`)))).toBe("delivery_not_found");
    expect(changes.some(({ deliveryId }) => deliveryId === `d${refused}`)).toBe(false);
    database.prepare("PRAGMA max_page_count = 10000").get();
    expect(await kindOf(tracker.accept({ ...big, deliveryId: `d${refused}` }))).toBe("success");
  });

  test("refuses further pushes of a session above its limits of number and bytes", async () => {
    const { tracker } = track();
    for (let i = 0; i < 100; i += 1) await tracker.accept(push({ deliveryId: `n${i}` }));
    expect(await kindOf(tracker.accept(push()))).toBe("overloaded");
    expect(await kindOf(tracker.accept(push({ sessionId: "other" })))).toBe("success");
    const large = { sessionId: "large", content: "x".repeat(700) };
    const outcomes: string[] = [];
    for (let i = 0; i < 99; i += 1)
      outcomes.push(await kindOf(tracker.accept(push({ ...large, deliveryId: `l${i}` }))));
    expect(outcomes.at(-1)).toBe("overloaded");
  });

  test("refuses a push over the size limit, and an id that it does not know", async () => {
    const { tracker } = track();
    expect(await kindOf(tracker.accept(push({ content: "x".repeat(2_000) })))).toBe("too_large");
    expect(await kindOf(tracker.wait("unknown", "delivered", 0, never))).toBe("delivery_not_found");
  });

  test("ends waits by the state, by an end, by the deadline and by the caller, and leaves nothing", async () => {
    const { tracker } = track();
    await tracker.accept(push());
    expect((await tracker.wait("d", "delivered", 0, never)).state).toBe("accepted");
    const deadline = await tracker.wait("d", "delivered", 1, never).catch((error: WireError) => error);
    expect(deadline).toMatchObject({ kind: "deadline_exceeded", data: { delivery: { state: "accepted" } } });
    const leaving = new AbortController();
    const left = tracker.wait("d", "delivered", 60_000, leaving.signal);
    leaving.abort(new Error("left"));
    await expect(left).rejects.toThrow("left");
    const waits = ["inserted", "delivered", "answered"] as const;
    const waiting = waits.map((until) => tracker.wait("d", until, 60_000, never).then(({ state }) => state));
    deliver(tracker);
    tracker.applyToAll("s", { kind: "settled", at, aborted: true, failed: false, held: false });
    expect(await Promise.all(waiting)).toEqual(["inserted", "delivered", "delivered"]);
  });

  test("ignores receipts from the helper of another session, and for unknown ids", async () => {
    const { tracker } = track();
    await tracker.accept(push());
    tracker.receive("other", { kind: "inserted", at, deliveryIds: ["d"] });
    tracker.receive("s", { kind: "inserted", at, deliveryIds: ["constructor", "__proto__", "nobody"] });
    expect(tracker.get("d").state).toBe("accepted");
  });

  test("forgets no settled delivery, though it keeps few of them in memory", async () => {
    const { tracker } = track();
    for (const id of ["a", "b", "c", "d"]) {
      await tracker.accept(push({ deliveryId: id }));
      tracker.apply("s", id, { kind: "dropped", at, reason: { code: "abort", message: "" } });
    }
    expect(["a", "b", "c", "d"].map((id) => tracker.get(id).state)).toEqual(Array(4).fill("dropped"));
    expect(tracker.pending("s")).toBe(0);
  });

  test("wants a carrier for a push that is in the transcript but in no request", async () => {
    const { tracker } = track();
    await tracker.accept(push());
    expect(tracker.wantsCarrier("s")).toBe(false);
    tracker.receive("s", { kind: "inserted", at, deliveryIds: ["d"] });
    expect(tracker.wantsCarrier("s")).toBe(true);
    tracker.receive("s", { kind: "prepared", at, requestId: "r", deliveryIds: ["d"] });
    expect(tracker.wantsCarrier("s")).toBe(false);
  });
});

test("a change is reported only once it is stored, so that no later daemon contradicts it", async () => {
  const store = new DeliveryStore(new Database(":memory:", () => {}));
  const told: (readonly [steps: number, stored: number])[] = [];
  const tracker = new DeliveryTracker({
    store,
    maxPushBytes: 1_000,
    maxOpenPerSession: 100,
    maxOpenBytesPerSession: 60_000,
    maxSettledInMemory: 2,
    maxSettledBytesInMemory: 10_000,
    log: pino({ level: "silent" }),
    onChange: ({ deliveryId, history }) => {
      told.push([history.length, store.get(deliveryId)?.delivery.history.length ?? 0]);
    },
  });
  await tracker.accept(push());
  deliver(tracker);
  await tracker.accept(push({ deliveryId: "e" }));
  tracker.apply("s", "e", { kind: "withdrawn", at, as: "cancelled", reason: { code: "cancelled", message: "x" } });
  await tracker.told();
  expect(told.map(([steps]) => steps)).toEqual([1, 2, 3, 4, 1, 2]);
  for (const [steps, stored] of told) expect(stored).toBeGreaterThanOrEqual(steps);
});

test("a push is shown only once it is stored, also to a client that asks before its acceptance was answered", async () => {
  const { tracker, database } = track();
  const store = new DeliveryStore(database);
  const shown = async (asked: Promise<Delivery>): Promise<readonly [string, string | undefined]> => {
    const { deliveryId, state } = await asked;
    return [state, store.get(deliveryId)?.delivery.state];
  };
  const accepted = tracker.accept(push());
  const signal = new AbortController().signal;
  const [read, waited] = [shown(tracker.read("d")), shown(tracker.wait("d", "inserted", 0, signal))];
  expect(await Promise.all([read, waited, shown(accepted)])).toEqual(Array(3).fill(["accepted", "accepted"]));
});

describe("a page of deliveries", () => {
  test("continues from its end while new pushes arrive, also with equal times and a clock that was set back", async () => {
    const { tracker } = track();
    const now = vi.spyOn(Date, "now").mockReturnValue(1_000);
    try {
      for (const deliveryId of ["a", "b", "c", "d"]) await tracker.accept(push({ deliveryId }));
      const first = await tracker.list({ limit: 2 });
      now.mockReturnValue(2_000);
      await tracker.accept(push({ deliveryId: "newer" }));
      const second = await tracker.list({ limit: 2, after: first.next as string });
      now.mockReturnValue(500);
      await tracker.accept(push({ deliveryId: "set-back" }));
      const ids = [...first.deliveries, ...second.deliveries].map(({ deliveryId }) => deliveryId);
      expect(ids).toEqual(["d", "c", "b", "a"]);
      expect(second.next).toBeUndefined();
      expect((await tracker.list({})).deliveries.map(({ deliveryId }) => deliveryId)).toEqual([
        "set-back",
        "newer",
        "d",
        "c",
        "b",
        "a",
      ]);
    } finally {
      now.mockRestore();
    }
  });

  test("is refused after a delivery that the store has forgotten, because older ones would be skipped", async () => {
    const { tracker, database } = track();
    for (const deliveryId of ["old", "b"]) await tracker.accept(push({ deliveryId }));
    tracker.apply("s", "b", { kind: "withdrawn", at, as: "cancelled", reason: { code: "cancelled", message: "x" } });
    const { next } = await tracker.list({ limit: 1 });
    await new DeliveryStore(database).expire(Number.MAX_SAFE_INTEGER);
    expect(await kindOf(tracker.list({ after: next as string }))).toBe("delivery_not_found");
  });

  test("has the current state of each delivery, and only the requested states, before anything is on disk", async () => {
    const { tracker } = track();
    for (const deliveryId of ["a", "b"]) await tracker.accept(push({ deliveryId }));
    tracker.apply("s", "b", { kind: "withdrawn", at, as: "cancelled", reason: { code: "cancelled", message: "x" } });
    const idsIn = async (state: Delivery["state"]) =>
      (await tracker.list({ states: [state] })).deliveries.map(({ deliveryId, state: now }) => [deliveryId, now]);
    expect(await idsIn("accepted")).toEqual([["a", "accepted"]]);
    expect(await idsIn("cancelled")).toEqual([["b", "cancelled"]]);
    expect(await tracker.list({ limit: 1, after: "a" })).toEqual({ deliveries: [] });
    await expect(tracker.list({ after: "none" })).rejects.toThrow("none");
  });
});

test("unfinished deliveries of a closed session get an end, and are not handed over", async () => {
  const { tracker, database } = track();
  await tracker.accept(push());
  await tracker.accept(push({ deliveryId: "inserted" }));
  tracker.receive("s", { kind: "inserted", at, deliveryIds: ["inserted"] });
  await tracker.accept(push({ deliveryId: "other", sessionId: "other" }));
  await tracker.told();
  const next = track(database, (sessionId) => sessionId === "s");
  expect([next.tracker.toHold("s"), next.tracker.toHold("other").length, next.tracker.pending("s")]).toEqual([
    [],
    1,
    0,
  ]);
  await next.tracker.told();
  expect(next.changes).toMatchObject([
    { deliveryId: "d", state: "failed", reason: { code: "session_closed" } },
    { deliveryId: "inserted", state: "unknown", reason: { code: "session_closed" } },
  ]);
  expect(track(database).tracker.openByState()).toEqual(new Map([["accepted", 1]]));
});
