import { expect, test } from "vitest";
import { type DeliveryProgress, outcomeOf } from "../../../extension/delivery/progress.ts";
import { DeliveryTracker } from "../../../extension/delivery/tracker.ts";
import type { OutwardBody } from "../../../extension/link/outbound.ts";

/** Something that happens to the delivery d1. */
type Occurrence = (tracker: DeliveryTracker) => void;

const deliveryIds = ["d1"];
const push = (deliveryId: string) => ({ deliveryId, deliverAs: "steer", triggerTurn: true }) as const;
const frame =
  (body: OutwardBody): Occurrence =>
  (tracker) =>
    tracker.apply(body);
const inserted = frame({ kind: "inserted", deliveryIds });
const prepared = (requestId: string): Occurrence => frame({ kind: "prepared", requestId, deliveryIds });
const verdict = (
  requestId: string,
  outcome: "delivered" | "failed" | "aborted",
  payload: "confirmed" | "unverified" | "unchecked" = "confirmed",
): Occurrence =>
  frame({
    kind: "verdict",
    requestId,
    outcome,
    payload: { d1: payload },
    ...(outcome === "delivered"
      ? { evidence: "headers" as const, status: 200 }
      : { status: 529, error: `${requestId}: overloaded` }),
  });
const answered = (requestId: string): Occurrence => frame({ kind: "answered", requestId, deliveryIds });
const settled = (how: "completed" | "failed" | "aborted", held: readonly string[] = []): Occurrence =>
  frame({ kind: "settled", aborted: how === "aborted", failed: how === "failed", held });
const gone = frame({ kind: "leftOut", deliveryIds, reason: "compacted" });
const removed = frame({ kind: "leftOut", deliveryIds, reason: "removed_by_extension" });
const cancelled: Occurrence = (tracker) => tracker.cancelled(deliveryIds);
const replaced: Occurrence = (tracker) => tracker.sessionLeft("session_replaced");

const straight = [inserted, prepared("r1"), verdict("r1", "delivered")];

function progressAfter(occurrences: readonly Occurrence[]): DeliveryProgress {
  const tracker = new DeliveryTracker(new Map(), () => {});
  tracker.held(push("d1"));
  for (const occurrence of occurrences) occurrence(tracker);
  const progress = tracker.progress("d1");
  if (progress === undefined) throw new Error("The delivery is not tracked.");
  return progress;
}

test.for<[string, readonly Occurrence[], string, string | undefined]>([
  ["the straight path", [...straight, answered("r1")], "answered", undefined],
  [
    "a retry",
    [inserted, prepared("r1"), verdict("r1", "failed"), prepared("r2"), verdict("r2", "delivered")],
    "delivered",
    undefined,
  ],
  ["a verdict about another request", [inserted, prepared("r1"), verdict("r9", "delivered")], "prepared", undefined],
  ["a verdict without an attempt", [inserted, verdict("r1", "delivered")], "inserted", undefined],
  [
    "a payload that lacks it",
    [inserted, prepared("r1"), verdict("r1", "delivered", "unverified")],
    "parked",
    "unverified",
  ],
  [
    "retries that are used up",
    [inserted, prepared("r1"), verdict("r1", "failed"), settled("failed")],
    "parked",
    "run_failed",
  ],
  ["an abort while it is held", [settled("aborted", ["d1"])], "parked", "abort"],
  ["an abort that leaves it for another hand-over", [settled("aborted")], "held", undefined],
  ["a run that ends well while it is held", [settled("completed", ["d1"])], "held", undefined],
  ["a run that completes after it", [inserted, settled("completed")], "inserted", undefined],
  [
    "a later run for what was parked",
    [inserted, settled("failed"), prepared("r2"), verdict("r2", "delivered")],
    "delivered",
    undefined,
  ],
  ["an abort in the answer", [...straight, settled("aborted")], "delivered", "unanswered_aborted"],
  [
    "another request that carries it again",
    [...straight, prepared("r2"), verdict("r2", "failed")],
    "delivered",
    undefined,
  ],
  ["the answer to another request", [...straight, answered("r2")], "delivered", undefined],
  ["a compaction before any request", [inserted, gone], "dropped", "compacted"],
  ["a compaction after the delivery", [...straight, gone], "delivered", undefined],
  ["a request that leaves it out", [inserted, removed, settled("completed")], "parked", "removed_by_extension"],
  [
    "a later request that has it",
    [inserted, removed, prepared("r2"), verdict("r2", "delivered")],
    "delivered",
    undefined,
  ],
  ["a cancel while it is held", [cancelled], "cancelled", undefined],
  ["a cancel that comes too late", [inserted, cancelled], "inserted", undefined],
  ["a release that had to wait", [frame({ kind: "dropped", deliveryIds, reason: "released" })], "cancelled", undefined],
  ["a drop by an abort", [frame({ kind: "dropped", deliveryIds, reason: "abort" })], "dropped", "abort"],
  ["another session while it is held", [replaced], "dropped", "session_replaced"],
  ["another session in the middle", [inserted, prepared("r1"), replaced], "unknown", "session_replaced"],
  ["another session after the delivery", [...straight, replaced], "delivered", "session_replaced"],
  ["anything after the end", [cancelled, inserted, prepared("r1"), verdict("r1", "delivered")], "cancelled", undefined],
])("%s", ([, occurrences, state, code]) => {
  const end = progressAfter(occurrences);
  expect(end.state).toBe(state);
  expect(end.reason?.code).toBe(code);
  expect(end.evidence).toBe(/^(delivered|answered)$/.test(state) ? "headers" : undefined);
});

test("a reached state stays reached, and a parked delivery ends waits", () => {
  const parked = [inserted, prepared("r1"), settled("failed")];
  expect(outcomeOf(progressAfter(parked), "prepared")).toBe("reached");
  expect(outcomeOf(progressAfter(parked), "delivered")).toBe("unmet");
  expect(outcomeOf(progressAfter([...parked, prepared("r2")]), "delivered")).toBe("open");
});

test("progress describes the latest request, and after the delivery the request that delivered", () => {
  const failing = [inserted, prepared("r1"), verdict("r1", "failed")];
  const of = (occurrences: readonly Occurrence[]): object => {
    const { state, reached, attempts, requestId, payload, evidence, status, error } = progressAfter(occurrences);
    return { state, reached, attempts, requestId, payload, evidence, status, error };
  };
  const failed = { requestId: "r1", status: 529, error: "r1: overloaded" };
  expect(of([])).toMatchObject({ state: "held", reached: "held", attempts: 0, requestId: undefined });
  expect(of(failing)).toMatchObject({ state: "prepared", reached: "prepared", attempts: 1, ...failed });
  expect(of([...failing, prepared("r2")])).toMatchObject({ attempts: 2, ...failed, requestId: "r2" });

  const delivered = [...failing, prepared("r2"), verdict("r2", "delivered")];
  const proof = { payload: "confirmed", evidence: "headers", status: 200, error: "r1: overloaded" };
  expect(of(delivered)).toMatchObject({ state: "delivered", attempts: 2, requestId: "r2", ...proof });
  expect(of([...delivered, answered("r2")])).toMatchObject({ state: "answered", requestId: "r2", ...proof });

  const broken = [...delivered, prepared("r3"), verdict("r3", "failed")];
  expect(of(broken)).toMatchObject({ state: "delivered", attempts: 3, requestId: "r2", ...proof });
  const carriedAgain = [...broken, prepared("r4"), verdict("r4", "delivered")];
  expect(of(carriedAgain)).toMatchObject({ state: "delivered", attempts: 4, requestId: "r4" });
  expect(of([...carriedAgain, answered("r4")])).toMatchObject({ state: "answered", requestId: "r4" });
});

test("frames about other deliveries change nothing, and call no watcher", () => {
  const tracker = new DeliveryTracker(new Map(), () => {});
  tracker.held(push("d2"));
  const record = tracker.get("d2")?.record;
  const heard: DeliveryProgress[] = [];
  tracker.watch("d2", (progress) => heard.push(progress));
  for (const occurrence of [inserted, prepared("r1"), verdict("r1", "delivered"), gone, cancelled]) occurrence(tracker);
  expect(tracker.get("d2")?.record).toBe(record);
  expect(heard).toEqual([]);
});

test("the tracker forgets the oldest finished deliveries, and never unfinished ones", () => {
  const tracker = new DeliveryTracker(new Map(), () => {});
  tracker.held(push("open"));
  for (let n = 0; n < 1_200; n += 1) {
    tracker.held(push(`d-${n}`));
    tracker.cancelled([`d-${n}`]);
  }
  expect(tracker.open).toBe(1);
  expect(tracker.get("open")).toBeDefined();
  expect(tracker.get("d-0")).toBeUndefined();
  expect(tracker.progress("d-1199")?.state).toBe("cancelled");
});

test("a watcher that throws is reported, and the others are called", () => {
  const faults: string[] = [];
  const tracker = new DeliveryTracker(new Map(), (where) => faults.push(where));
  const heard: string[] = [];
  tracker.held(push("d1"));
  tracker.watch("d1", () => {
    throw new Error("broken");
  });
  const unwatch = tracker.watch("d1", ({ state }) => heard.push(state));
  inserted(tracker);
  unwatch?.();
  prepared("r1")(tracker);
  expect(heard).toEqual(["inserted"]);
  expect(faults).toEqual(["watcher", "watcher"]);
  expect(tracker.watch("d9", () => {})).toBeUndefined();
});
