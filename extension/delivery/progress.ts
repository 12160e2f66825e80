import type {
  DeliverAs,
  Delivery,
  DeliveryState,
  Evidence,
  PayloadCheck,
  Reason,
  WaitUntil,
} from "../../protocol/delivery.ts";
import type { DeliveryRecord } from "../../protocol/delivery-machine.ts";
import { endsWait, hasReached } from "../../protocol/delivery-progress.ts";

/** Progress of a delivery as known to this pi. */
export interface DeliveryProgress {
  readonly deliveryId: string;
  /** The states of the daemon's deliveries, from `held` on. */
  readonly state: DeliveryState;
  /** The furthest state ever reached, of `held`, `inserted`, `prepared`, `delivered` and `answered`. */
  readonly reached: DeliveryState;
  readonly deliverAs: DeliverAs;
  /** Requests to the provider that carried it. */
  readonly attempts: number;
  /** The latest request. */
  readonly requestId?: string;
  /** Whether the content was found in the payload of the request that was delivered. */
  readonly payload?: PayloadCheck;
  /** The evidence for `delivered`. */
  readonly evidence?: Evidence;
  /** HTTP status of the latest request with a verdict, if the provider's API has one. */
  readonly status?: number;
  /** Error text of the provider or pi for the latest failed request. */
  readonly error?: string;
  /** Why it is parked, or has ended without an answer. */
  readonly reason?: Reason;
}

/** The helper's record of a delivery. */
export type TrackedRecord = DeliveryRecord & Pick<Delivery, "deliveryId">;

/** The progress of a delivery for extensions. */
export function progressOf(record: TrackedRecord): DeliveryProgress {
  const { deliveryId, state, deliverAs, attempts, reason } = record;
  const isDelivered = state === "delivered" || state === "answered";
  // A later request may carry a delivered push again, and fail. It remains delivered by the one before.
  const latest = (isDelivered && attempts.findLast(({ outcome }) => outcome === "delivered")) || attempts.at(-1);
  const ended = attempts.slice(0, latest === undefined ? 0 : attempts.indexOf(latest) + 1);
  const status = ended.findLast((attempt) => attempt.status !== undefined)?.status;
  const error = ended.findLast((attempt) => attempt.error !== undefined)?.error;
  return {
    deliveryId,
    state,
    reached: reachedBy(record),
    deliverAs,
    attempts: attempts.at(-1)?.n ?? 0,
    ...(latest === undefined ? {} : { requestId: latest.requestId }),
    ...(isDelivered && latest !== undefined ? { payload: latest.payload } : {}),
    ...(isDelivered && latest?.evidence !== undefined ? { evidence: latest.evidence } : {}),
    ...(status === undefined ? {} : { status }),
    ...(error === undefined ? {} : { error }),
    ...(reason === undefined ? {} : { reason }),
  };
}

function reachedBy({ state, attempts, insertedAt }: DeliveryRecord): DeliveryState {
  if (state === "delivered" || state === "answered") return state;
  if (attempts.length > 0) return "prepared";
  return insertedAt === undefined ? "held" : "inserted";
}

/** Whether a wait for a state is over: `unmet` means that the state cannot be reached without a new start. */
export function outcomeOf(progress: DeliveryProgress, until: WaitUntil): "reached" | "unmet" | "open" {
  if (hasReached(progress.reached, until)) return "reached";
  return endsWait(progress, until) ? "unmet" : "open";
}
