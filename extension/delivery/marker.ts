import { DELIVERY_MARK } from "../../protocol/link.ts";
import type { HeldPush } from "../../protocol/link-inward.ts";
import { isRecord } from "../../protocol/objects.ts";

const deliveryId = /^[0-9A-Za-z][0-9A-Za-z._:-]{0,127}$/;

/** Whether a value is a valid delivery id. */
export function isDeliveryId(value: unknown): value is string {
  return typeof value === "string" && deliveryId.test(value);
}

/**
 * Returns the client's `details` with the delivery id under our key. `details` reach hooks, the session file and the
 * wire unchanged, and are never sent to the model.
 */
export function markedDetails(push: Pick<HeldPush, "deliveryId" | "details">): Record<string, unknown> {
  return { ...push.details, [DELIVERY_MARK]: { deliveryId: push.deliveryId } };
}

/** Returns the delivery id of a custom message or entry, `undefined` for anything else or a malformed mark. */
export function deliveryIdOf(message: unknown): string | undefined {
  if (!isRecord(message)) return undefined;
  if (message["role"] !== "custom" && message["type"] !== "custom_message") return undefined;
  const details = message["details"];
  const mark = isRecord(details) ? details[DELIVERY_MARK] : undefined;
  const id = isRecord(mark) ? mark["deliveryId"] : undefined;
  return isDeliveryId(id) ? id : undefined;
}
