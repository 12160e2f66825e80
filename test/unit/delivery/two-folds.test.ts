import fc from "fast-check";
import { expect, test } from "vitest";
import { advance, heldProgress } from "../../../extension/delivery/progress.ts";
import type { DeliverAs, Delivery } from "../../../protocol/delivery.ts";
import { deliveryStates } from "../../../protocol/delivery-progress.ts";
import type { OutwardFrame } from "../../../protocol/link.ts";
import { transition } from "../../../server/delivery/delivery-state.ts";
import { inputsOf } from "../../../server/delivery/receipts.ts";
import { partial } from "../../helpers/partial.ts";

const deliveryId = "d1";
const deliveryIds = [deliveryId];
const outcome = fc.constantFrom("delivered", "failed", "aborted");
const payload = fc.constantFrom("confirmed", "unverified", "unchecked");
const reason = fc.constantFrom("compacted", "session_replaced", "removed_by_extension", "off_branch");
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

/**
 * Frames in an order in which a helper can send them: a push is inserted once, and a request ends before the next one.
 */
function framesOf(steps: readonly (typeof step extends fc.Arbitrary<infer S> ? S : never)[]): OutwardFrame[] {
  const frames: OutwardFrame[] = [];
  let isInserted = false;
  for (const [at, one] of steps.entries()) {
    const requestId = `r${at}`;
    if (one.kind === "inserted" && !isInserted) {
      isInserted = true;
      frames.push({ kind: "inserted", at, deliveryIds });
    }
    if (one.kind === "settled") {
      const held = one.isHeld && !isInserted ? deliveryIds : [];
      frames.push({ kind: "settled", at, aborted: one.how === "aborted", failed: one.how === "failed", held });
    }
    if (one.kind === "leftOut" && isInserted) frames.push({ kind: "leftOut", at, deliveryIds, reason: one.reason });
    if (one.kind !== "request" || !isInserted) continue;
    frames.push({ kind: "prepared", at, requestId, deliveryIds });
    const evidence = one.outcome === "delivered" ? { evidence: "headers" as const } : {};
    frames.push({
      kind: "verdict",
      at,
      requestId,
      outcome: one.outcome,
      ...evidence,
      payload: { [deliveryId]: one.payload },
    });
    const isAccepted = one.outcome === "delivered" && one.payload !== "unverified";
    if (isAccepted && one.isAnswered) frames.push({ kind: "answered", at, requestId, deliveryIds });
  }
  return frames;
}

function held(deliverAs: DeliverAs): Delivery {
  return partial<Delivery>({
    deliveryId,
    deliverAs,
    state: "held",
    triggerTurn: true,
    attempts: [],
    history: [{ state: "held", at: 0 }],
    updatedAt: 0,
  });
}

test("the daemon and the helper fold the same frames to the same state, by the same table of states", () => {
  fc.assert(
    fc.property(
      fc.array(step, { maxLength: 8 }),
      fc.constantFrom("steer", "followUp", "nextTurn"),
      (steps, deliverAs) => {
        let ofDaemon = held(deliverAs);
        let ofHelper = heldProgress(deliveryId, deliverAs);
        for (const frame of framesOf(steps)) {
          const before = ofHelper;
          ofHelper = advance(ofHelper, frame);
          for (const [, input] of inputsOf(frame, deliveryIds)) {
            const made = transition(ofDaemon, input);
            expect(made.kind).not.toBe("impossible");
            if (made.kind === "changed") ofDaemon = made.delivery;
          }
          expect(ofHelper.state).toBe(ofDaemon.state);
          expect(ofHelper.reason?.code).toBe(ofDaemon.reason?.code);
          if (ofHelper.state !== before.state) expect(deliveryStates[before.state].next).toContain(ofHelper.state);
        }
      },
    ),
    { numRuns: 2_000 },
  );
});
