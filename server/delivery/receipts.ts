import type { Reason } from "../../protocol/delivery.ts";
import { isLeftOutForGood, type LeftOutReason, type OutwardFrame } from "../../protocol/link.ts";
import type { DeliveryInput } from "./delivery-state.ts";

const leftOutBecause: Readonly<Record<LeftOutReason, Reason>> = {
  compacted: { code: "compacted", message: "The transcript was compacted before any request carried it." },
  session_replaced: { code: "session_replaced", message: "Its entry is not in the session any more." },
  removed_by_extension: {
    code: "removed_by_extension",
    message: "An extension took it out of a request; a later request may carry it.",
  },
  off_branch: {
    code: "off_branch",
    message: "Its entry is not on the active branch; a request made from that branch will carry it.",
  },
};
const droppedByAbort: Reason = { code: "policy", message: "The run was aborted, and the push was to be dropped then." };

/** What a frame of the helper says about each delivery. `open`: the ids of all that are open in the session. */
export function* inputsOf(
  frame: OutwardFrame,
  open: readonly string[],
): Generator<readonly [deliveryId: string, input: DeliveryInput]> {
  switch (frame.kind) {
    case "inserted":
      for (const id of frame.deliveryIds) yield [id, { kind: "inserted", at: frame.at }];
      return;
    case "prepared":
      for (const id of frame.deliveryIds) yield [id, { kind: "prepared", at: frame.at, requestId: frame.requestId }];
      return;
    case "verdict": {
      const { at, requestId, outcome, evidence, status, error } = frame;
      for (const [id, payload] of Object.entries(frame.payload)) {
        yield [id, { kind: "verdict", at, requestId, outcome, payload, evidence, status, error }];
      }
      return;
    }
    case "answered":
      for (const id of frame.deliveryIds) yield [id, { kind: "answered", at: frame.at, requestId: frame.requestId }];
      return;
    case "leftOut": {
      const kind = isLeftOutForGood(frame.reason) ? "dropped" : "leftOut";
      for (const id of frame.deliveryIds) yield [id, { kind, at: frame.at, reason: leftOutBecause[frame.reason] }];
      return;
    }
    case "dropped":
      // What was released becomes what its withdrawal says.
      if (frame.reason === "released") return;
      for (const id of frame.deliveryIds) yield [id, { kind: "dropped", at: frame.at, reason: droppedByAbort }];
      return;
    case "settled": {
      const { at, aborted, failed } = frame;
      for (const id of open) yield [id, { kind: "settled", at, aborted, failed, held: frame.held.includes(id) }];
      return;
    }
    default:
  }
}
