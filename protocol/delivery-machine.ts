import type { By } from "./client-identity.ts";
import type { Attempt, Delivery, DeliveryState, Evidence, PayloadCheck, Reason } from "./delivery.ts";
import { deliveryStates, isTerminal } from "./delivery-progress.ts";

/**
 * The fields of a delivery that the machine reads and writes. The daemon and the helper keep records with additional
 * fields, which a transition copies.
 */
export type DeliveryRecord = Pick<
  Delivery,
  | "state"
  | "deliverAs"
  | "triggerTurn"
  | "attempts"
  | "evidence"
  | "reason"
  | "redelivered"
  | "history"
  | "updatedAt"
  | "insertedAt"
  | "settledAt"
>;

/** Inputs of a delivery's state machine. `at` is Unix milliseconds. */
export type DeliveryInput =
  | { readonly kind: "held"; readonly at: number }
  | { readonly kind: "inserted"; readonly at: number }
  | { readonly kind: "prepared"; readonly at: number; readonly requestId: string }
  | {
      readonly kind: "verdict";
      readonly at: number;
      readonly requestId: string;
      readonly outcome: "delivered" | "failed" | "aborted";
      readonly payload: PayloadCheck;
      readonly evidence?: Evidence | undefined;
      readonly status?: number | undefined;
      readonly error?: string | undefined;
    }
  | { readonly kind: "answered"; readonly at: number; readonly requestId: string }
  /** The run has ended; pi does not continue it. */
  | {
      readonly kind: "settled";
      readonly at: number;
      readonly aborted: boolean;
      readonly failed: boolean;
      readonly held: boolean;
    }
  /** The push will never reach the model: it left the transcript, or was abandoned before it was inserted. */
  | { readonly kind: "dropped"; readonly at: number; readonly reason: Reason }
  /** A request omitted it. Its entry is in the session, so a later request may contain it. */
  | { readonly kind: "leftOut"; readonly at: number; readonly reason: Reason }
  /** It was withdrawn, which is valid only if it is not in the transcript. */
  | {
      readonly kind: "withdrawn";
      readonly at: number;
      readonly as: "cancelled" | "expired" | "dropped" | "failed";
      readonly reason?: Reason | undefined;
      /** The client that withdrew it. */
      readonly by?: By | undefined;
    }
  /** A run was requested to carry it. */
  | { readonly kind: "resent"; readonly at: number; readonly by?: By | undefined }
  /** It could not be sent to pi for now, and is kept. */
  | { readonly kind: "postponed"; readonly at: number; readonly reason: Reason }
  /** The run starts or stops waiting for the answer to an extension's dialog. */
  | { readonly kind: "dialog"; readonly at: number; readonly isOpen: boolean }
  | { readonly kind: "childEnded"; readonly at: number }
  | { readonly kind: "sessionClosed"; readonly at: number }
  /** A new daemon does not know the session. */
  | { readonly kind: "sessionGone"; readonly at: number }
  /** The conversation was kept in the memory of a pi that has ended. */
  | { readonly kind: "sessionLost"; readonly at: number }
  /** For the helper: this pi has left the session. Its later fate is not known here. */
  | { readonly kind: "sessionLeft"; readonly at: number; readonly code: "session_replaced" | "session_closed" };

/** The effect of an input. `ignored`: it adds nothing new. `impossible`: it contradicts the state. */
export type Transition<D extends DeliveryRecord = DeliveryRecord> =
  | { readonly kind: "changed"; readonly delivery: D }
  | { readonly kind: "ignored" }
  | { readonly kind: "impossible" };

const maxAttempts = 32;
const maxHistory = 64;
const ignored = { kind: "ignored" } as const;
const impossible = { kind: "impossible" } as const;

/** The state machine of a delivery, for the daemon and the helper: pure, and the only place where states change. */
export function transition<D extends DeliveryRecord>(delivery: D, input: DeliveryInput): Transition<D> {
  if (isTerminal(delivery)) return ignored;
  // Times of the helper and of the daemon can differ from the order of inputs, and a clock can be set back. The
  // history never goes back; an attempt keeps its own time.
  const result = apply(delivery, { ...input, at: Math.max(input.at, delivery.updatedAt) }, input.at);
  if (result.kind !== "changed") return result;
  const isStep = result.delivery.history !== delivery.history;
  if (isStep && !mayFollow(delivery, result.delivery)) return impossible;
  // Every step copies the record that it was given.
  return result as Transition<D>;
}

/** Whether the added steps are all allowed by the state table. */
function mayFollow({ state, history }: DeliveryRecord, { history: later }: DeliveryRecord): boolean {
  const last = history.at(-1);
  let before = state;
  for (const step of later.slice(last === undefined ? 0 : later.indexOf(last) + 1)) {
    if (!deliveryStates[before].next.includes(step.state)) return false;
    before = step.state;
  }
  return true;
}

function apply(delivery: DeliveryRecord, input: DeliveryInput, measuredAt: number): Transition {
  switch (input.kind) {
    case "held":
      return held(delivery, input.at);
    case "inserted":
      return isBeforeInsertion(delivery) ? move(delivery, "inserted", { at: input.at }) : ignored;
    case "prepared":
      return prepared(delivery, input, measuredAt);
    case "verdict":
      return verdict(delivery, input, measuredAt);
    case "answered":
      return answered(delivery, input);
    case "settled":
      return settled(delivery, input);
    case "dropped":
      return delivery.state === "delivered"
        ? ignored
        : move(delivery, "dropped", { at: input.at, reason: input.reason });
    case "leftOut":
      return leftOut(delivery, input);
    case "withdrawn":
      return isBeforeInsertion(delivery) ? move(delivery, input.as, input) : ignored;
    case "resent":
      if (delivery.state !== "parked") return ignored;
      return move(delivery, isBeforeInsertion(delivery) ? "held" : "inserted", { at: input.at, by: input.by });
    case "postponed":
      return (delivery.state === "accepted" || delivery.state === "held") &&
        delivery.reason?.message !== input.reason.message
        ? { kind: "changed", delivery: { ...delivery, reason: input.reason, updatedAt: input.at } }
        : ignored;
    case "dialog":
      return dialog(delivery, input);
    case "childEnded":
      return childEnded(delivery, input.at);
    case "sessionClosed":
      return sessionEnded(delivery, input.at, reason("session_closed", "The session was closed."));
    case "sessionGone":
      return sessionEnded(delivery, input.at, reason("session_closed", "The session was closed, or is lost."));
    case "sessionLost":
      return sessionEnded(
        delivery,
        input.at,
        reason("session_lost", "The session was kept in its pi's memory alone, and that pi has ended."),
      );
    case "sessionLeft":
      return sessionEnded(delivery, input.at, reason(input.code, sessionLeftSentences[input.code]), "dropped");
  }
}

/** The helper has it; the reason for waiting is removed. */
function held(delivery: DeliveryRecord, at: number): Transition {
  if (delivery.state === "accepted") return move(delivery, "held", { at });
  return delivery.state === "held" && delivery.reason?.code === "not_started" ? withoutReason(delivery, at) : ignored;
}

/** A run that waits for an answer hands over no push. A push for the next prompt does not wait for the run. */
function dialog(delivery: DeliveryRecord, { at, isOpen }: Extract<DeliveryInput, { kind: "dialog" }>): Transition {
  const { state, deliverAs, reason: why } = delivery;
  if (state !== "held" || deliverAs === "nextTurn") return ignored;
  if (!isOpen) return why?.code === "dialog" ? withoutReason(delivery, at) : ignored;
  if (why !== undefined) return ignored;
  const waits = reason("dialog", "The run waits for the answer to an extension's dialog.");
  return { kind: "changed", delivery: { ...delivery, reason: waits, updatedAt: at } };
}

function withoutReason({ reason: _why, ...rest }: DeliveryRecord, at: number): Transition {
  return { kind: "changed", delivery: { ...rest, updatedAt: at } };
}

function prepared(
  delivery: DeliveryRecord,
  input: Extract<DeliveryInput, { kind: "prepared" }>,
  measuredAt: number,
): Transition {
  if (delivery.attempts.some(({ requestId }) => requestId === input.requestId)) return ignored;
  if (isBeforeInsertion(delivery)) {
    // A push is in a request's message list only if it is in the transcript.
    const inserted = move(delivery, "inserted", { at: input.at });
    return inserted.kind === "changed" ? prepared(inserted.delivery, input, measuredAt) : inserted;
  }
  const attempt: Attempt = {
    requestId: input.requestId,
    n: (delivery.attempts.at(-1)?.n ?? 0) + 1,
    preparedAt: measuredAt,
    payload: "unchecked",
  };
  // If the payload of an attempt did not contain it, the model cannot have seen it.
  const mayHaveBeenSeen = delivery.attempts.some(
    ({ outcome, payload }) => outcome === "unknown" && payload !== "unverified",
  );
  const redelivered = delivery.redelivered === true || mayHaveBeenSeen;
  const next: DeliveryRecord = {
    ...delivery,
    attempts: [...delivery.attempts, attempt].slice(-maxAttempts),
    ...(redelivered ? { redelivered } : {}),
    updatedAt: input.at,
  };
  if (delivery.state === "delivered") return { kind: "changed", delivery: next };
  return move(next, "prepared", { at: input.at, requestId: input.requestId });
}

function leftOut(delivery: DeliveryRecord, input: Extract<DeliveryInput, { kind: "leftOut" }>): Transition {
  if (delivery.state === "delivered") return ignored;
  if (isBeforeInsertion(delivery)) {
    // The helper reports this only for entries in the session.
    const inserted = move(delivery, "inserted", { at: input.at });
    return inserted.kind === "changed" ? leftOut(inserted.delivery, input) : inserted;
  }
  const isKnown = delivery.state === "parked" && delivery.reason?.code === input.reason.code;
  return isKnown ? ignored : move(delivery, "parked", input);
}

function verdict(
  delivery: DeliveryRecord,
  input: Extract<DeliveryInput, { kind: "verdict" }>,
  measuredAt: number,
): Transition {
  const open = delivery.attempts.find(({ requestId }) => requestId === input.requestId);
  if (open === undefined || open.outcome !== undefined) return impossible;
  const unverified = input.outcome === "delivered" && input.payload === "unverified";
  const ended: Attempt = {
    ...open,
    payload: input.payload,
    outcome: unverified ? "unknown" : input.outcome,
    endedAt: measuredAt,
    ...(input.status === undefined ? {} : { status: input.status }),
    ...(input.evidence === undefined ? {} : { evidence: input.evidence }),
    ...(input.error === undefined ? {} : { error: input.error.slice(0, 1_024) }),
  };
  const next: DeliveryRecord = {
    ...delivery,
    attempts: delivery.attempts.map((attempt) => (attempt === open ? ended : attempt)),
    updatedAt: input.at,
  };
  if (delivery.state !== "prepared") return { kind: "changed", delivery: next };
  const { at, requestId, evidence } = input;
  if (unverified) {
    return move(next, "parked", {
      at,
      requestId,
      reason: reason("unverified", "The request was accepted, but its payload did not contain the pushed content."),
    });
  }
  if (input.outcome === "delivered") return move(next, "delivered", { at, requestId, evidence });
  return { kind: "changed", delivery: next };
}

function answered(delivery: DeliveryRecord, input: Extract<DeliveryInput, { kind: "answered" }>): Transition {
  const attempt = delivery.attempts.find(({ requestId }) => requestId === input.requestId);
  if (attempt === undefined) return impossible;
  // The answer to a request without the push is not an answer to the push.
  if (attempt.outcome !== "delivered" || delivery.state !== "delivered") return ignored;
  return move(delivery, "answered", { at: input.at, requestId: input.requestId, evidence: "message" });
}

function settled(delivery: DeliveryRecord, input: Extract<DeliveryInput, { kind: "settled" }>): Transition {
  const { at, aborted, failed, held } = input;
  const stopped = aborted || failed;
  const why = aborted
    ? reason("abort", "The run was aborted; a later run will carry it.")
    : reason("run_failed", "The run ended without the provider's acceptance; a later run will carry it.");
  switch (delivery.state) {
    case "prepared":
      return move(delivery, "parked", { at, reason: why });
    case "inserted":
      return stopped ? move(delivery, "parked", { at, reason: why }) : ignored;
    case "held":
      return stopped && held && delivery.deliverAs !== "nextTurn"
        ? move(delivery, "parked", { at, reason: why })
        : ignored;
    case "delivered": {
      const unanswered = aborted
        ? reason("unanswered_aborted", "The model got it; the run was aborted before the answer was complete.")
        : reason("unanswered_error", "The model got it; the run ended without a complete answer.");
      return { kind: "changed", delivery: { ...delivery, reason: unanswered, updatedAt: at } };
    }
    default:
      return ignored;
  }
}

function childEnded(delivery: DeliveryRecord, at: number): Transition {
  const attempts = delivery.attempts.map(
    (attempt): Attempt => (attempt.outcome === undefined ? { ...attempt, outcome: "unknown", endedAt: at } : attempt),
  );
  const next: DeliveryRecord = { ...delivery, attempts, updatedAt: at };
  const interrupted = reason("interrupted", "pi ended in the middle of the run; a later run will carry it.");
  switch (delivery.state) {
    case "prepared":
      return move(next, "parked", { at, reason: interrupted });
    case "inserted":
      // A push that wants a run and has had none gets it from the next child.
      return startsRun(delivery) ? ignored : move(next, "parked", { at, reason: interrupted });
    case "delivered":
      return {
        kind: "changed",
        delivery: {
          ...next,
          reason: reason("interrupted", "The model got it; pi ended before the answer was complete."),
        },
      };
    default:
      return ignored;
  }
}

/** `notInserted`: the state of a push that is not in the transcript. */
function sessionEnded(
  delivery: DeliveryRecord,
  at: number,
  why: Reason,
  notInserted: "failed" | "dropped" = "failed",
): Transition {
  if (delivery.state === "delivered") return { kind: "changed", delivery: { ...delivery, reason: why, updatedAt: at } };
  return move(delivery, isInserted(delivery) ? "unknown" : notInserted, { at, reason: why });
}

const sessionLeftSentences = {
  session_replaced: "The session was replaced by another.",
  session_closed: "pi has ended the session.",
} as const;

/** Whether a push is in the transcript. */
export function isInserted({ insertedAt }: DeliveryRecord): boolean {
  return insertedAt !== undefined;
}

/** Whether an open push is not in the transcript yet. */
export function isBeforeInsertion(delivery: DeliveryRecord): boolean {
  const { state } = delivery;
  return state === "accepted" || state === "held" || (state === "parked" && !isInserted(delivery));
}

/** Whether a push in the transcript starts a run; not after an abort or a failure. */
export function startsRun({ state, triggerTurn, attempts, history }: DeliveryRecord): boolean {
  return state === "inserted" && triggerTurn && attempts.length === 0 && history.at(-2)?.state !== "parked";
}

/** Upgrades a record of an older version that kept the insertion only in `history`, which may have been cut since. */
export function withInsertedAt(delivery: Delivery): Delivery {
  if (delivery.insertedAt !== undefined) return delivery;
  const { history, attempts } = delivery;
  // Only pushes in the transcript are in a request.
  const at = history.find(({ state }) => state === "inserted")?.at ?? attempts[0]?.preparedAt;
  return at === undefined ? delivery : { ...delivery, insertedAt: at };
}

interface Step {
  readonly at: number;
  readonly requestId?: string | undefined;
  readonly evidence?: Evidence | undefined;
  readonly reason?: Reason | undefined;
  readonly by?: By | undefined;
}

function move(delivery: DeliveryRecord, state: DeliveryState, step: Step): Transition {
  const { reason: _before, ...rest } = delivery;
  const settles = delivery.settledAt === undefined && (state === "delivered" || isTerminal({ state }));
  return {
    kind: "changed",
    delivery: {
      ...rest,
      state,
      updatedAt: step.at,
      ...(state === "inserted" && delivery.insertedAt === undefined ? { insertedAt: step.at } : {}),
      ...(step.evidence === undefined ? {} : { evidence: step.evidence }),
      ...(step.reason === undefined ? {} : { reason: step.reason }),
      ...(settles ? { settledAt: step.at } : {}),
      history: [
        ...delivery.history,
        {
          state,
          at: step.at,
          ...(step.requestId === undefined ? {} : { requestId: step.requestId }),
          ...(step.evidence === undefined ? {} : { evidence: step.evidence }),
          ...(step.reason === undefined ? {} : { reason: step.reason }),
          ...(step.by === undefined ? {} : { by: step.by }),
        },
      ].slice(-maxHistory),
    },
  };
}

function reason(code: Reason["code"], message: string): Reason {
  return { code, message };
}
