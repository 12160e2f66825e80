import type { Delivery, DeliveryState, WaitUntil } from "./delivery.ts";

interface StateRow {
  /** For documents. */
  readonly means: string;
  /** The states that can follow. None: the delivery ends in this state. */
  readonly next: readonly DeliveryState[];
  /** Additional rule, for documents. */
  readonly note?: string;
}

/**
 * Every state of a delivery and every transition. The daemon allows no others, and PROTOCOL.md is generated from it.
 */
export const deliveryStates: Readonly<Record<DeliveryState, StateRow>> = {
  accepted: {
    means: "the daemon has stored it",
    next: ["held", "inserted", "dropped", "cancelled", "expired", "failed"],
  },
  held: {
    means: "the helper inside pi keeps it until it is due",
    next: ["inserted", "parked", "dropped", "cancelled", "expired", "failed"],
  },
  inserted: {
    means: "it is in the session's transcript; never twice",
    next: ["prepared", "parked", "dropped", "unknown"],
  },
  prepared: {
    means: "a request to the provider is being made, and it is in its message list",
    next: ["prepared", "delivered", "parked", "dropped", "unknown"],
  },
  delivered: {
    means: "the provider has accepted a request that carries it",
    next: ["answered"],
    note: "or the end with a `reason`",
  },
  answered: { means: "the answer to that request is complete", next: [] },
  parked: {
    means: "no run carries it now; a later run will",
    next: ["held", "inserted", "prepared", "parked", "dropped", "cancelled", "expired", "failed", "unknown"],
    note: "`held`, `cancelled`, `expired` and `failed` only without `insertedAt`, `unknown` only with it",
  },
  dropped: { means: "it will not reach the model", next: [] },
  failed: { means: "it will not reach the model: it was never in the transcript", next: [] },
  unknown: { means: "the session was closed while it was in the transcript", next: [] },
  cancelled: { means: "a client withdrew it before it was inserted", next: [] },
  expired: { means: "it was not inserted within `expiresAfterMs`", next: [] },
};

const ladder: readonly DeliveryState[] = ["accepted", "held", "inserted", "prepared", "delivered", "answered"];

/** Whether a delivery is final. `delivered` is final once it has a `reason`: its run ended without an answer. */
export function isTerminal(delivery: Pick<Delivery, "state" | "reason">): boolean {
  return (
    // Unknown states of later versions count as open.
    deliveryStates[delivery.state]?.next.length === 0 ||
    (delivery.state === "delivered" && delivery.reason !== undefined)
  );
}

/** Whether a state implies that `until` was reached. */
export function hasReached(state: DeliveryState, until: WaitUntil): boolean {
  return ladder.indexOf(state) >= ladder.indexOf(until);
}

/** Whether a wait for `until` ends: the state is reached, parked, or can never be reached. */
export function endsWait(delivery: Pick<Delivery, "state" | "reason">, until: WaitUntil): boolean {
  return hasReached(delivery.state, until) || delivery.state === "parked" || isTerminal(delivery);
}
