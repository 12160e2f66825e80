import fc from "fast-check";
import { expect, test } from "vitest";
import { DeliveryTracker } from "../../../extension/delivery/tracker.ts";
import type { OutwardBody } from "../../../extension/link/outbound.ts";
import type { DeliverAs, Delivery } from "../../../protocol/delivery.ts";
import { transition } from "../../../protocol/delivery-machine.ts";
import { deliveryStates, isTerminal } from "../../../protocol/delivery-progress.ts";
import { inputsOf } from "../../../protocol/delivery-receipts.ts";
import type { OutwardFrame } from "../../../protocol/link-outward.ts";

const deliveryId = "d1";
const deliveryIds = [deliveryId];
const ladder = ["held", "inserted", "prepared", "delivered", "answered"];
const outcome = fc.constantFrom("delivered", "failed", "aborted");
const payload = fc.constantFrom("confirmed", "unverified", "unchecked");
const reason = fc.constantFrom("compacted", "session_replaced", "removed_by_extension", "off_branch");
const deliverAs = fc.constantFrom<DeliverAs[]>("steer", "followUp", "nextTurn");
const step = fc.oneof(
  fc.record({ kind: fc.constant("request" as const), outcome, payload, isAnswered: fc.boolean() }),
  fc.record({ kind: fc.constant("leftOut" as const), reason }),
  fc.record({
    kind: fc.constant("settled" as const),
    how: fc.constantFrom("completed", "aborted", "failed"),
    isHeld: fc.boolean(),
  }),
  fc.record({ kind: fc.constant("inserted" as const) }),
);

type Verdict = Pick<Extract<OutwardFrame, { kind: "verdict" }>, "outcome"> & {
  readonly payload: "confirmed" | "unverified" | "unchecked";
};

function verdict(requestId: string, { outcome: how, payload: check }: Verdict): OutwardBody {
  const evidence = how === "delivered" ? { evidence: "headers" as const } : {};
  return { kind: "verdict", requestId, outcome: how, ...evidence, payload: { [deliveryId]: check } };
}

/**
 * Frames in an order in which a helper can send them: a push is inserted once, and a request ends before the next one.
 */
function framesOf(steps: readonly (typeof step extends fc.Arbitrary<infer S> ? S : never)[]): OutwardBody[] {
  const frames: OutwardBody[] = [];
  let isInserted = false;
  for (const [at, one] of steps.entries()) {
    const requestId = `r${at}`;
    if (one.kind === "inserted" && !isInserted) {
      isInserted = true;
      frames.push({ kind: "inserted", deliveryIds });
    }
    if (one.kind === "settled") {
      const held = one.isHeld && !isInserted ? deliveryIds : [];
      frames.push({ kind: "settled", aborted: one.how === "aborted", failed: one.how === "failed", held });
    }
    if (one.kind === "leftOut" && isInserted) frames.push({ kind: "leftOut", deliveryIds, reason: one.reason });
    if (one.kind !== "request" || !isInserted) continue;
    frames.push({ kind: "prepared", requestId, deliveryIds }, verdict(requestId, one));
    const isAccepted = one.outcome === "delivered" && one.payload !== "unverified";
    if (isAccepted && one.isAnswered) frames.push({ kind: "answered", requestId, deliveryIds });
  }
  return frames;
}

/** Frames about few requests, in any order. */
const anyFrame: fc.Arbitrary<OutwardBody> = fc.constantFrom("r1", "r2", "r3").chain((requestId) =>
  fc.oneof(
    fc.constantFrom<OutwardBody[]>(
      { kind: "inserted", deliveryIds },
      { kind: "prepared", requestId, deliveryIds },
      { kind: "answered", requestId, deliveryIds },
      { kind: "dropped", deliveryIds, reason: "abort" },
      { kind: "dropped", deliveryIds, reason: "released" },
      { kind: "inserted", deliveryIds: ["other"] },
      { kind: "reload" },
    ),
    fc.record({ outcome, payload }).map((how) => verdict(requestId, how)),
    fc.record({ kind: fc.constant("leftOut" as const), deliveryIds: fc.constant(deliveryIds), reason }),
    fc.record({
      kind: fc.constant("settled" as const),
      aborted: fc.boolean(),
      failed: fc.boolean(),
      held: fc.constantFrom([], deliveryIds),
    }),
  ),
);

function held(as: DeliverAs): Delivery {
  return {
    deliveryId,
    sessionId: "s",
    customType: "t",
    deliverAs: as,
    state: "held",
    triggerTurn: true,
    attempts: [],
    history: [{ state: "held", at: 0 }],
    createdAt: 0,
    updatedAt: 0,
  };
}

function ofHelper(as: DeliverAs): DeliveryTracker {
  const tracker = new DeliveryTracker(new Map(), () => {});
  tracker.held({ deliveryId, deliverAs: as, triggerTurn: true });
  return tracker;
}

/** What a daemon makes of a frame. */
function fold(delivery: Delivery, body: OutwardBody, at: number): { readonly delivery: Delivery; isPossible: boolean } {
  let next = delivery;
  let isPossible = true;
  for (const [, input] of inputsOf({ ...body, at } as OutwardFrame, deliveryIds)) {
    const made = transition(next, input);
    if (made.kind === "changed") next = made.delivery;
    isPossible &&= made.kind !== "impossible";
  }
  return { delivery: next, isPossible };
}

test("the daemon and the helper fold the same frames to the same state, and none contradicts a state", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 8 }), deliverAs, (steps, as) => {
      const tracker = ofHelper(as);
      let delivery = held(as);
      for (const [at, frame] of framesOf(steps).entries()) {
        tracker.apply(frame);
        const folded = fold(delivery, frame, at);
        expect(folded.isPossible).toBe(true);
        delivery = folded.delivery;
        const progress = tracker.progress(deliveryId);
        expect(progress?.state).toBe(delivery.state);
        expect(progress?.reason).toEqual(delivery.reason);
        expect(progress?.attempts).toBe(delivery.attempts.length);
      }
    }),
    { numRuns: 1_000 },
  );
});

test("frames in any order, repeated and late, take only steps of the table, and a repeated frame changes nothing", () => {
  fc.assert(
    fc.property(fc.array(anyFrame, { maxLength: 12 }), deliverAs, (frames, as) => {
      let delivery = held(as);
      for (const [at, frame] of frames.entries()) {
        const before = delivery;
        delivery = fold(before, frame, at).delivery;
        const again = fold(delivery, frame, at);
        expect(again.delivery).toBe(delivery);
        if (isTerminal(before)) expect(delivery).toBe(before);
        const states = [before.state, ...delivery.history.slice(before.history.length).map(({ state }) => state)];
        for (const [i, state] of states.slice(1).entries()) {
          expect(deliveryStates[states[i] ?? "unknown"].next).toContain(state);
        }
        expect(states.at(-1)).toBe(delivery.state);
        expect(delivery).toMatchObject({ deliveryId, sessionId: "s", customType: "t", createdAt: 0 });
        if (delivery.state !== "delivered" && delivery.state !== "answered") continue;
        const proof = delivery.attempts.filter((one) => one.outcome === "delivered" && one.payload !== "unverified");
        expect(proof).not.toEqual([]);
      }
    }),
    { numRuns: 3_000 },
  );
});

test("frames in any order never take a delivery in the helper back from the furthest state that it reached", () => {
  fc.assert(
    fc.property(fc.array(anyFrame, { maxLength: 12 }), deliverAs, (frames, as) => {
      const tracker = ofHelper(as);
      let reached = 0;
      for (const frame of frames) {
        tracker.apply(frame);
        const now = ladder.indexOf(tracker.progress(deliveryId)?.reached ?? "");
        expect(now).toBeGreaterThanOrEqual(reached);
        reached = now;
      }
    }),
    { numRuns: 1_000 },
  );
});
