import type { Delivery, DeliveryState, WaitUntil } from "./delivery.ts";

const terminalStates: ReadonlySet<DeliveryState> = new Set<DeliveryState>([
  "answered",
  "dropped",
  "cancelled",
  "expired",
  "failed",
  "unknown",
]);

const ladder: readonly DeliveryState[] = ["accepted", "held", "inserted", "prepared", "delivered", "answered"];

/**
 * Whether a delivery will never change again. One that is `delivered` does not once it has a `reason`: its run has
 * ended without an answer.
 */
export function isTerminal(delivery: Pick<Delivery, "state" | "reason">): boolean {
  return terminalStates.has(delivery.state) || (delivery.state === "delivered" && delivery.reason !== undefined);
}

/** Whether a state says that `until` was reached. */
export function hasReached(state: DeliveryState, until: WaitUntil): boolean {
  return ladder.indexOf(state) >= ladder.indexOf(until);
}

/** Whether a wait for `until` ends here: it is reached, or parked, or can never be reached. */
export function endsWait(delivery: Pick<Delivery, "state" | "reason">, until: WaitUntil): boolean {
  return hasReached(delivery.state, until) || delivery.state === "parked" || isTerminal(delivery);
}
