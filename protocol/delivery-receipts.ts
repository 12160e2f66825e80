import type { Reason } from "./delivery.ts";
import type { DeliveryInput } from "./delivery-machine.ts";
import { isLeftOutForGood, type LeftOutReason } from "./link.ts";
import type { OutwardFrame } from "./link-outward.ts";

const leftOutBecause: Readonly<Record<LeftOutReason, Reason>> = {
  compacted: { code: "compacted", message: "The transcript was compacted before any request carried it." },
  session_replaced: { code: "session_replaced", message: "Its entry is no longer in the session." },
  removed_by_extension: {
    code: "removed_by_extension",
    message: "An extension removed it from a request; a later request may carry it.",
  },
  off_branch: {
    code: "off_branch",
    message: "Its entry is not on the active branch; a request made from that branch will carry it.",
  },
};
const droppedByAbort: Reason = { code: "policy", message: "The run was aborted, which drops this push by its policy." };

/** The inputs that a frame of the helper means for each delivery. `open`: the open ids of the session. */
export function* inputsOf(
  frame: OutwardFrame,
  open: Iterable<string>,
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
      // The withdrawal of a released push gives its outcome.
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
