import { DELIVERY_MARK, type HeldPush } from "../../protocol/link.ts";
import { isObject } from "../pi-types.ts";

const deliveryId = /^[0-9A-Za-z][0-9A-Za-z._:-]{0,127}$/;

/** Whether a value can be a delivery's id. */
export function isDeliveryId(value: unknown): value is string {
  return typeof value === "string" && deliveryId.test(value);
}

/**
 * The `details` of a push's message: the client's own, and the delivery's identity under our key. `details` reach every
 * hook, the session file and the wire unchanged, and are never sent to the model.
 */
export function markedDetails(push: Pick<HeldPush, "deliveryId" | "details">): Record<string, unknown> {
  return { ...push.details, [DELIVERY_MARK]: { deliveryId: push.deliveryId } };
}

/** The id that a custom message or entry carries. Whatever is not such a message, or no well-formed mark, has none. */
export function deliveryIdOf(message: unknown): string | undefined {
  if (!isObject(message)) return undefined;
  if (message["role"] !== "custom" && message["type"] !== "custom_message") return undefined;
  const details = message["details"];
  const mark = isObject(details) ? details[DELIVERY_MARK] : undefined;
  const id = isObject(mark) ? mark["deliveryId"] : undefined;
  return isDeliveryId(id) ? id : undefined;
}
