import type { HeldPush } from "../../../protocol/link-inward.ts";

/** A push with the usual fields. */
export function heldPush(deliveryId: string, fields: Partial<HeldPush> = {}): HeldPush {
  return {
    deliveryId,
    customType: "test",
    content: `Content of ${deliveryId}.`,
    display: true,
    deliverAs: "steer",
    triggerTurn: true,
    onAbort: "park",
    ...fields,
  };
}
