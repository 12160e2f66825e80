import type { Evidence, PayloadCheck } from "../../protocol/delivery.ts";

/** A request to the provider. */
export interface Attempt {
  readonly requestId: string;
  /** For each push of the request, whether its content was found in the payload. */
  readonly payload: Readonly<Record<string, PayloadCheck>>;
}

/** Where the observation of requests stands. */
export type Observation =
  | { readonly kind: "none"; readonly warming: boolean }
  /**
   * The message list was made; nothing says yet that the provider has it. `warming`: a cache-warming request may be under
   * way, so that headers prove nothing. `response`: what has answered this request, as far as HTTP tells: `any`, headers
   * that may be another request's or that are no success.
   */
  | {
      readonly kind: "offered";
      readonly attempt: Attempt;
      readonly warming: boolean;
      readonly payloadSeen: boolean;
      readonly response: "none" | "any" | Success;
    }
  /** The answer has started, of which nothing proves that it is the model's: its first content will. */
  | {
      readonly kind: "started";
      readonly attempt: Attempt;
      readonly warming: boolean;
      readonly status: number | undefined;
    }
  /** The provider has accepted the request; its answer is under way. */
  | { readonly kind: "accepted"; readonly attempt: Attempt; readonly warming: boolean };

/** A response of status 2xx to this very request. */
interface Success {
  readonly status: number;
  readonly contentType: string | undefined;
}

/** What the hooks say, in pi's order. */
export type Sighting =
  /** `context_with_system`: a message list. */
  | { readonly kind: "request"; readonly requestId: string; readonly deliveryIds: readonly string[] }
  /** `before_provider_request`, which pi may call twice for one request: the last one left. */
  | { readonly kind: "payload"; readonly checks: Readonly<Record<string, PayloadCheck>> }
  /** `after_provider_response`. */
  | { readonly kind: "headers"; readonly status: number; readonly contentType: string | undefined }
  /** The assistant's `message_start`. */
  | { readonly kind: "start"; readonly stopReason: string; readonly api: string; readonly failure: Failure }
  /** A `message_update` with content. */
  | { readonly kind: "content" }
  /** The assistant's `message_end`. */
  | { readonly kind: "end"; readonly stopReason: string; readonly failure: Failure }
  /** `cache_warming_decision`: whatever we say, another extension may let the request through. */
  | { readonly kind: "warming" }
  /** The run has settled, or the session was replaced: nothing more comes. */
  | { readonly kind: "over"; readonly failure: Failure };

/** Why a request ended without an answer. Looked at only when it did. */
export interface Failure {
  readonly aborted: boolean;
  readonly status?: number;
  readonly error?: string;
}

export type Finding =
  | {
      readonly kind: "verdict";
      readonly attempt: Attempt;
      readonly outcome: "delivered";
      readonly evidence: Evidence;
      readonly status?: number;
    }
  | {
      readonly kind: "verdict";
      readonly attempt: Attempt;
      readonly outcome: "failed" | "aborted";
      readonly status?: number;
      readonly error?: string;
    }
  | { readonly kind: "answered"; readonly attempt: Attempt };

export interface Step {
  readonly next: Observation;
  readonly findings: readonly Finding[];
}

export const nothingObserved: Observation = { kind: "none", warming: false };

/**
 * pi's own adapter that also works over a WebSocket: there are no headers then, and `message_start` follows the service's
 * first event. With Google's adapters there are none either, but theirs follows any response of status 2xx, a login page
 * too. An extension's own provider may say `start` before its request is answered.
 */
const webSocketAdapter = "openai-codex-responses";

/**
 * pi always asks for a stream, so any other type is not from the model: the login page of a network, or the page that a
 * redirect leads to, which `fetch` follows with a GET that has no body.
 */
function isStream(contentType: string | undefined, api: string): boolean {
  const type = contentType?.split(";", 1)[0]?.trim().toLowerCase();
  return type === (api === "bedrock-converse-stream" ? "application/vnd.amazon.eventstream" : "text/event-stream");
}

/**
 * The verdict about each attempt, as a pure state machine: delivered is said only with evidence, and each attempt ends
 * exactly once. A message list alone is an offer: pi makes one even after an abort during a tool or without credentials.
 */
export function observe(state: Observation, sighting: Sighting): Step {
  switch (sighting.kind) {
    case "request": {
      const ended = end(state, { aborted: false, error: "pi made another request before this one was answered." });
      const { requestId, deliveryIds } = sighting;
      const { warming } = state;
      const payload = Object.fromEntries(deliveryIds.map((id) => [id, "unchecked" as const]));
      return {
        next: { kind: "offered", attempt: { requestId, payload }, warming, payloadSeen: false, response: "none" },
        findings: ended.findings,
      };
    }
    case "payload":
      return state.kind === "offered"
        ? stay({ ...withChecks(state, sighting.checks), payloadSeen: true })
        : stay(state);
    case "headers":
      return headers(state, sighting);
    case "start":
      return start(state, sighting);
    case "content":
      return state.kind === "started" ? accept(state, "content", state.status) : stay(state);
    case "end":
      return messageEnd(state, sighting);
    case "warming":
      return stay({ ...state, warming: true });
    case "over":
      return end(state, sighting.failure);
  }
}

type Open = Extract<Observation, { kind: "offered" | "started" }>;

/** Whether an attempt has no verdict yet, so that no other request may touch the provider's hooks. */
export function isOpen(state: Observation): state is Open {
  return state.kind === "offered" || state.kind === "started";
}

function headers(state: Observation, { status, contentType }: Extract<Sighting, { kind: "headers" }>): Step {
  if (state.kind !== "offered") return stay({ ...state, warming: false });
  const isOwn = state.payloadSeen && !state.warming && status >= 200 && status < 300;
  if (isOwn) return stay({ ...state, response: { status, contentType } });
  return stay(state.response === "none" ? { ...state, response: "any" } : state);
}

function start(state: Observation, { stopReason, api, failure }: Extract<Sighting, { kind: "start" }>): Step {
  if (state.kind !== "offered") return stay(state);
  if (isFailure(stopReason)) return end(state, withStop(failure, stopReason));
  const { response } = state;
  const success = typeof response === "object" ? response : undefined;
  if (success !== undefined && stopReason === "pending" && isStream(success.contentType, api)) {
    return accept(state, "headers", success.status);
  }
  // An extension's own provider may name this api, and say start before its request is answered: pi's adapter has shown
  // its payload by then.
  const isByWebSocket = api === webSocketAdapter && response === "none" && state.payloadSeen;
  if (isByWebSocket && stopReason === "pending") return accept(state, "start");
  return stay({ kind: "started", attempt: state.attempt, warming: state.warming, status: success?.status });
}

function messageEnd(state: Observation, { stopReason, failure }: Extract<Sighting, { kind: "end" }>): Step {
  if (state.kind === "none") return stay(state);
  if (!isComplete(stopReason)) return end(state, withStop(failure, stopReason));
  const { attempt } = state;
  const answered: Finding = { kind: "answered", attempt };
  const status = state.kind === "started" ? state.status : undefined;
  const findings = state.kind === "accepted" ? [answered] : [delivered(attempt, "message", status), answered];
  return { next: none(state), findings };
}

/** The attempt is over. One that was accepted already has its verdict. */
function end(state: Observation, failure: Failure): Step {
  if (!isOpen(state)) return stay(none(state));
  const { aborted, ...why } = failure;
  const outcome = aborted ? ("aborted" as const) : ("failed" as const);
  return { next: none(state), findings: [{ kind: "verdict", attempt: state.attempt, outcome, ...why }] };
}

function accept({ attempt }: Open, evidence: Evidence, status?: number): Step {
  return { next: { kind: "accepted", attempt, warming: false }, findings: [delivered(attempt, evidence, status)] };
}

/** A warming request that was under way when an attempt began is over with it: pi gives it up for the newer request. */
function none(state: Observation): Observation {
  return { kind: "none", warming: isOpen(state) ? false : state.warming };
}

function delivered(attempt: Attempt, evidence: Evidence, status?: number): Finding {
  return { kind: "verdict", attempt, outcome: "delivered", evidence, ...(status === undefined ? {} : { status }) };
}

function withChecks(
  state: Extract<Observation, { kind: "offered" }>,
  checks: Readonly<Record<string, PayloadCheck>>,
): Extract<Observation, { kind: "offered" }> {
  const payload = Object.fromEntries(
    Object.entries(state.attempt.payload).map(([id, before]) => [id, checks[id] ?? before]),
  );
  return { ...state, attempt: { ...state.attempt, payload } };
}

function withStop(failure: Failure, stopReason: string): Failure {
  return stopReason === "aborted" ? { ...failure, aborted: true } : failure;
}

function isFailure(stopReason: string): boolean {
  return stopReason === "error" || stopReason === "aborted";
}

function isComplete(stopReason: string): boolean {
  return stopReason === "stop" || stopReason === "toolUse" || stopReason === "length";
}

function stay(next: Observation): Step {
  return { next, findings: [] };
}
