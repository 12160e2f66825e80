import { expect, test } from "vitest";
import { advance, type DeliveryEvent, heldProgress, outcomeOf } from "../../../extension/delivery/progress.ts";
import { DeliveryTracker } from "../../../extension/delivery/tracker.ts";
import { unchecked } from "../../helpers/partial.ts";

const ids = ["d1"];
const inserted: DeliveryEvent = { kind: "inserted", deliveryIds: ids };
const prepared = (requestId: string): DeliveryEvent => ({ kind: "prepared", requestId, deliveryIds: ids });
const verdict = (
  requestId: string,
  outcome: "delivered" | "failed" | "aborted",
  payload: "confirmed" | "unverified" = "confirmed",
): DeliveryEvent => ({
  kind: "verdict",
  requestId,
  outcome,
  payload: { d1: payload },
  ...(outcome === "delivered" ? { evidence: "headers" as const } : { status: 529, error: "529: overloaded" }),
});
const answered = (requestId: string): DeliveryEvent => ({ kind: "answered", requestId, deliveryIds: ids });
const settled = (how: "completed" | "failed" | "aborted", held: readonly string[] = []): DeliveryEvent => ({
  kind: "settled",
  aborted: how === "aborted",
  failed: how === "failed",
  held,
});
const gone: DeliveryEvent = { kind: "leftOut", deliveryIds: ids, reason: "compacted" };
const removed: DeliveryEvent = { kind: "leftOut", deliveryIds: ids, reason: "removed_by_extension" };
const cancelled: DeliveryEvent = { kind: "cancelled", deliveryIds: ids };
const replaced: DeliveryEvent = { kind: "over", code: "session_replaced" };

const straight = [inserted, prepared("r1"), verdict("r1", "delivered")];

test.for<[string, readonly DeliveryEvent[], string, string | undefined]>([
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
  ["a release that had to wait", [{ kind: "dropped", deliveryIds: ids, reason: "released" }], "cancelled", undefined],
  ["a drop by an abort", [{ kind: "dropped", deliveryIds: ids, reason: "abort" }], "dropped", "abort"],
  ["another session while it is held", [replaced], "dropped", "session_replaced"],
  ["another session in the middle", [inserted, prepared("r1"), replaced], "unknown", "session_replaced"],
  ["another session after the delivery", [...straight, replaced], "delivered", "session_replaced"],
  [
    "whatever comes behind the end",
    [cancelled, inserted, prepared("r1"), verdict("r1", "delivered")],
    "cancelled",
    undefined,
  ],
])("%s", ([, occurrences, state, code]) => {
  const end = occurrences.reduce(advance, heldProgress("d1", "steer"));
  expect(end.state).toBe(state);
  expect(end.reason?.code).toBe(code);
  expect(end.evidence === undefined).toBe(
    !occurrences.includes(unchecked(straight[2])) && !/^(delivered|answered)$/.test(state),
  );
});

test("a reached state stays reached, and a parked delivery ends waits", () => {
  const parked = [inserted, prepared("r1"), settled("failed")].reduce(advance, heldProgress("d1", "steer"));
  expect(outcomeOf(parked, "prepared")).toBe("reached");
  expect(outcomeOf(parked, "delivered")).toBe("unmet");
  expect(outcomeOf(advance(parked, prepared("r2")), "delivered")).toBe("open");
});

test("frames about other deliveries return the same object", () => {
  const progress = heldProgress("d2", "steer");
  for (const occurrence of [inserted, prepared("r1"), verdict("r1", "delivered"), gone, cancelled]) {
    expect(advance(progress, occurrence)).toBe(progress);
  }
});

test("the tracker forgets the oldest finished deliveries, and never unfinished ones", () => {
  const tracker = new DeliveryTracker(new Map(), () => {});
  tracker.held({ deliveryId: "open", deliverAs: "steer" });
  for (let n = 0; n < 1_200; n += 1) {
    tracker.held({ deliveryId: `d-${n}`, deliverAs: "steer" });
    tracker.apply({ kind: "cancelled", deliveryIds: [`d-${n}`] });
  }
  expect(tracker.open).toBe(1);
  expect(tracker.get("open")).toBeDefined();
  expect(tracker.get("d-0")).toBeUndefined();
  expect(tracker.get("d-1199")?.progress.state).toBe("cancelled");
});

test("a watcher that throws is reported, and the others are called", () => {
  const faults: string[] = [];
  const tracker = new DeliveryTracker(new Map(), (where) => faults.push(where));
  const heard: string[] = [];
  tracker.held({ deliveryId: "d1", deliverAs: "steer" });
  tracker.watch("d1", () => {
    throw new Error("broken");
  });
  const unwatch = tracker.watch("d1", ({ state }) => heard.push(state));
  tracker.apply(inserted);
  unwatch?.();
  tracker.apply(prepared("r1"));
  expect(heard).toEqual(["inserted"]);
  expect(faults).toEqual(["watcher", "watcher"]);
  expect(tracker.watch("d9", () => {})).toBeUndefined();
});
