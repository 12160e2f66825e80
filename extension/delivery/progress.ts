import type {
  DeliverAs,
  DeliveryState,
  Evidence,
  PayloadCheck,
  Reason,
  ReasonCode,
  WaitUntil,
} from "../../protocol/delivery.ts";
import { endsWait, hasReached, isTerminal } from "../../protocol/delivery-progress.ts";
import { isLeftOutForGood, type LeftOutReason } from "../../protocol/link.ts";
import type { OutwardBody } from "../link/outbound.ts";

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

/** Events of a delivery: the engine's frames, and two without a frame. */
export type DeliveryEvent =
  | OutwardBody
  | { readonly kind: "cancelled"; readonly deliveryIds: readonly string[] }
  /** All deliveries end. */
  | { readonly kind: "over"; readonly code: "session_replaced" | "session_closed" };

export function heldProgress(deliveryId: string, deliverAs: DeliverAs): DeliveryProgress {
  return { deliveryId, state: "held", reached: "held", deliverAs, attempts: 0 };
}

/** Whether a wait for a state is over: `unmet` means that the state cannot be reached without a new start. */
export function outcomeOf(progress: DeliveryProgress, until: WaitUntil): "reached" | "unmet" | "open" {
  if (hasReached(progress.reached, until)) return "reached";
  return endsWait(progress, until) ? "unmet" : "open";
}

/** Applies an event to a delivery; returns the same object if nothing changes. Pure. */
export function advance(progress: DeliveryProgress, what: DeliveryEvent): DeliveryProgress {
  if (isTerminal(progress)) return progress;
  switch (what.kind) {
    case "inserted":
      return concerns(what, progress) && progress.reached === "held" ? move(progress, "inserted") : progress;
    case "prepared":
      return concerns(what, progress) ? prepared(progress, what.requestId) : progress;
    case "verdict":
      return verdict(progress, what);
    case "answered": {
      const isIts = concerns(what, progress) && what.requestId === progress.requestId;
      return isIts && progress.state === "delivered" ? move(progress, "answered") : progress;
    }
    case "leftOut":
      return concerns(what, progress) ? leftOut(progress, what.reason) : progress;
    case "dropped":
      if (!concerns(what, progress)) return progress;
      return what.reason === "released" ? move(progress, "cancelled") : move(progress, "dropped", reason(what.reason));
    case "cancelled":
      return concerns(what, progress) && progress.reached === "held" ? move(progress, "cancelled") : progress;
    case "settled":
      return settled(progress, what);
    case "over":
      return over(progress, what.code);
    default:
      return progress;
  }
}

type Frame<K extends OutwardBody["kind"]> = Extract<OutwardBody, { kind: K }>;

function concerns(what: { readonly deliveryIds: readonly string[] }, { deliveryId }: DeliveryProgress): boolean {
  return what.deliveryIds.includes(deliveryId);
}

/** A delivered push stays delivered when a later request carries it again. */
function prepared(progress: DeliveryProgress, requestId: string): DeliveryProgress {
  const next = { ...progress, attempts: progress.attempts + 1 };
  return progress.state === "delivered" ? next : { ...move(next, "prepared"), requestId };
}

function verdict(progress: DeliveryProgress, frame: Frame<"verdict">): DeliveryProgress {
  const payload = Object.hasOwn(frame.payload, progress.deliveryId) ? frame.payload[progress.deliveryId] : undefined;
  if (payload === undefined) return progress;
  // A retry after a broken answer: the answer to this request is the answer to the push.
  const isCarriedAgain = frame.outcome === "delivered" && payload !== "unverified";
  if (progress.state === "delivered") return isCarriedAgain ? { ...progress, requestId: frame.requestId } : progress;
  if (frame.requestId !== progress.requestId || progress.state !== "prepared") return progress;
  const { status, error, evidence } = frame;
  const next: DeliveryProgress = {
    ...progress,
    ...(status === undefined ? {} : { status }),
    ...(error === undefined ? {} : { error }),
  };
  if (frame.outcome !== "delivered") return next;
  if (payload === "unverified") return move(next, "parked", reason("unverified"));
  return { ...move(next, "delivered"), payload, ...(evidence === undefined ? {} : { evidence }) };
}

function leftOut(progress: DeliveryProgress, code: LeftOutReason): DeliveryProgress {
  if (progress.state === "delivered") return progress;
  if (isLeftOutForGood(code)) return move(progress, "dropped", reason(code));
  return progress.reason?.code === code ? progress : move(progress, "parked", reason(code));
}

function settled(progress: DeliveryProgress, { aborted, failed, held }: Frame<"settled">): DeliveryProgress {
  const isStopped = aborted || failed;
  const parked = (): DeliveryProgress => move(progress, "parked", reason(aborted ? "abort" : "run_failed"));
  switch (progress.state) {
    case "prepared":
      return parked();
    case "inserted":
      return isStopped ? parked() : progress;
    case "held":
      return isStopped && held.includes(progress.deliveryId) && progress.deliverAs !== "nextTurn" ? parked() : progress;
    case "delivered":
      return { ...progress, reason: reason(aborted ? "unanswered_aborted" : "unanswered_error") };
    default:
      return progress;
  }
}

function over(progress: DeliveryProgress, code: "session_replaced" | "session_closed"): DeliveryProgress {
  if (progress.state === "delivered") return { ...progress, reason: reason(code) };
  return move(progress, progress.reached === "held" ? "dropped" : "unknown", reason(code));
}

function move(progress: DeliveryProgress, state: DeliveryState, why?: Reason): DeliveryProgress {
  const { reason: _before, ...rest } = progress;
  const isProgression = state !== "parked" && !isTerminal({ state });
  const reached =
    (isProgression || state === "answered") && !hasPassed(progress.reached, state) ? state : progress.reached;
  return { ...rest, state, reached, ...(why === undefined ? {} : { reason: why }) };
}

const progression: readonly DeliveryState[] = ["held", "inserted", "prepared", "delivered", "answered"];

function hasPassed(reached: DeliveryState, state: DeliveryState): boolean {
  return progression.indexOf(reached) >= progression.indexOf(state);
}

const sentences: Partial<Readonly<Record<ReasonCode, string>>> = {
  abort: "The run was aborted before the provider had accepted a request that carries it.",
  run_failed: "The run ended without the provider's acceptance; a later run will carry it.",
  unverified: "The request was accepted, but its payload did not hold the content.",
  unanswered_aborted: "The model got it; the run was aborted before the answer was complete.",
  unanswered_error: "The model got it; the run ended without a complete answer.",
  compacted: "The transcript was compacted before any request carried it.",
  removed_by_extension: "An extension took it out of the request; a later one may have it.",
  off_branch: "Its entry is not on the active branch; a request from that branch has it.",
  session_replaced: "The session was replaced by another.",
  session_closed: "pi has ended the session.",
};

function reason(code: ReasonCode): Reason {
  return { code, message: sentences[code] ?? code };
}
