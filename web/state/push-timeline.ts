import type { By, Delivery, DeliveryState, Evidence } from "../../client/browser.ts";
import type { Attempt } from "../../protocol/delivery.ts";
import { evidenceWords } from "./evidence.ts";

// What a delivery says of itself, in sentences. Foreign text in it: names of clients, reasons, errors of providers.

/** One step of a push's life. */
export interface TimelineStep {
  readonly state: DeliveryState;
  /** Unix time in milliseconds. */
  readonly at: number;
  /** Since the step before the first one, which is 0. */
  readonly sinceStartMs: number;
  /** A sentence: what the step means here. */
  readonly words: string;
  /** The attempt that it belongs to. */
  readonly attempt?: number;
  readonly evidence?: Evidence;
  readonly by?: By;
}

/** One request to the provider that carried the push. */
export interface TimelineRequest {
  readonly n: number;
  readonly requestId: string;
  readonly preparedAt: number;
  readonly sinceStartMs: number;
  readonly outcome: "open" | NonNullable<Attempt["outcome"]>;
  /** How it ended, or that it has not. */
  readonly words: string;
  /** Whether what was sent had the content. */
  readonly payloadWords: string;
  readonly evidence?: Evidence;
  readonly status?: number;
  /** From its making to its verdict. Absent while it is open. */
  readonly tookMs?: number;
  /** What the provider said. */
  readonly error?: string;
}

export interface Timeline {
  readonly steps: readonly TimelineStep[];
  readonly requests: readonly TimelineRequest[];
  /** Why it is where it is, if no step says it. */
  readonly why?: string;
}

const moments = {
  steer: "for the next request",
  followUp: "until the run would end",
  nextTurn: "until the next prompt",
} as const;

/** The steps of a delivery and the requests that carried it. */
export function timelineOf(delivery: Delivery): Timeline {
  const { history, attempts, createdAt, reason } = delivery;
  const numbers = new Map(attempts.map(({ requestId, n }) => [requestId, n]));
  const steps = history.map((step, index): TimelineStep => {
    const { state, at, requestId, evidence, by } = step;
    const attempt = requestId === undefined ? undefined : numbers.get(requestId);
    const status = attempts.find((one) => one.requestId === requestId)?.status;
    return {
      state,
      at,
      sinceStartMs: at - createdAt,
      words: step.reason?.message ?? meaning(state, delivery, history[index - 1]?.state, evidence, status),
      ...(attempt === undefined ? {} : { attempt }),
      ...(evidence === undefined ? {} : { evidence }),
      ...(by === undefined ? {} : { by }),
    };
  });
  const requests = attempts.map((attempt) => requestOf(attempt, createdAt));
  const isSaid = reason === undefined || history.at(-1)?.reason?.message === reason.message;
  return { steps, requests, ...(isSaid ? {} : { why: reason.message }) };
}

function meaning(
  state: DeliveryState,
  { deliverAs }: Delivery,
  before: DeliveryState | undefined,
  evidence: Evidence | undefined,
  status: number | undefined,
): string {
  switch (state) {
    case "accepted":
      return "The daemon has stored it.";
    case "held":
      return before === "parked"
        ? "It was sent again: pi keeps it for the next run."
        : `pi keeps it ${moments[deliverAs] ?? "until its moment"}.`;
    case "inserted":
      return before === "parked" ? "A run was asked to carry it." : "It is in the conversation, and never twice.";
    case "prepared":
      return "A request to the provider was made, with it in its messages.";
    case "delivered": {
      const proof = evidence === undefined ? "the provider accepted the request" : evidenceWords(evidence);
      return `The model has it: ${proof}${status === undefined ? "" : ` (status ${status})`}.`;
    }
    case "answered":
      return "The answer to that request is complete.";
    case "parked":
      return "No run carries it now; a later run will.";
    case "dropped":
      return "It will not reach the model.";
    case "failed":
      return "It will not reach the model; it was never in the conversation.";
    case "unknown":
      return "The session was closed while it was in the conversation.";
    case "cancelled":
      return "A client withdrew it.";
    case "expired":
      return "Its time ended before it was in the conversation.";
    default:
      return state;
  }
}

function requestOf(attempt: Attempt, createdAt: number): TimelineRequest {
  const { n, requestId, preparedAt, payload, outcome = "open", endedAt, status, evidence, error } = attempt;
  return {
    n,
    requestId,
    preparedAt,
    sinceStartMs: preparedAt - createdAt,
    outcome,
    words: outcome === "unknown" && payload === "unverified" ? "accepted, without the content" : outcomes[outcome],
    payloadWords: payloads[payload],
    ...(evidence === undefined ? {} : { evidence }),
    ...(status === undefined ? {} : { status }),
    ...(endedAt === undefined ? {} : { tookMs: Math.max(0, endedAt - preparedAt) }),
    ...(error === undefined ? {} : { error }),
  };
}

const outcomes = {
  open: "no answer yet",
  delivered: "accepted",
  failed: "failed",
  aborted: "stopped",
  unknown: "not known: pi ended first",
} as const;

const payloads = {
  confirmed: "What was sent had the content.",
  unverified: "What was sent did not have the content.",
  unchecked: "What was sent is not checked yet.",
} as const;

/** What people can do with a push, or why not. */
export interface PushActions {
  readonly cancel: Possible;
  readonly resend: Possible;
}

export type Possible = { readonly kind: "yes" } | { readonly kind: "no"; readonly words: string };

const yes: Possible = { kind: "yes" };

/** What the state of a delivery allows; the daemon may still refuse. `isOver`: its state is final. */
export function actionsOf({ state, insertedAt }: Delivery, isOver: boolean): PushActions {
  const over: Possible = { kind: "no", words: "Its way has ended." };
  if (isOver) return { cancel: over, resend: over };
  const isInside = insertedAt !== undefined || !["accepted", "held", "parked"].includes(state);
  return {
    cancel: isInside ? { kind: "no", words: "It is in the conversation, so it cannot be withdrawn." } : yes,
    resend: state === "parked" ? yes : { kind: "no", words: "Only a push that is parked can be sent again." },
  };
}

/** A time since the beginning: `+6 ms`, `+3.7 s`, `+3 min 5 s`, `+2 h 3 min`, `+4 d 1 h`. */
export function offsetWords(ms: number): string {
  const sign = ms < 0 ? "−" : "+";
  const size = Math.abs(ms);
  if (size < 1_000) return `${sign}${Math.round(size)} ms`;
  const seconds = size / 1_000;
  if (seconds < 60) return `${sign}${seconds.toFixed(1)} s`;
  const [unit, part, of] =
    seconds < 3_600
      ? (["min", "s", 60] as const)
      : seconds < 86_400
        ? (["h", "min", 60] as const)
        : (["d", "h", 24] as const);
  const parts = Math.floor(seconds / (unit === "min" ? 1 : unit === "h" ? 60 : 3_600));
  return `${sign}${Math.floor(parts / of)} ${unit} ${parts % of} ${part}`;
}
