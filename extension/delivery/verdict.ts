import type { Evidence, PayloadCheck } from "../../protocol/delivery.ts";

/** A request to the provider. */
export interface Attempt {
  readonly requestId: string;
  /** For each push of the request, whether its content was found in the payload. */
  readonly payload: Readonly<Record<string, PayloadCheck>>;
}

/** State of the observation of a request. */
export type Observation =
  | { readonly kind: "none"; readonly warming: boolean }
  /**
   * The message list was made; there is no evidence yet that the provider has it. `warming`: a cache-warming request
   * may be active, so headers prove nothing. `response`: the HTTP response so far; `any` are headers of a failure or
   * possibly of another request.
   */
  | {
      readonly kind: "offered";
      readonly attempt: Attempt;
      readonly warming: boolean;
      readonly payloadSeen: boolean;
      readonly response: "none" | "any" | Success;
    }
  /** An answer has started, with no proof yet that it is the model's; its first content is the proof. */
  | {
      readonly kind: "started";
      readonly attempt: Attempt;
      readonly warming: boolean;
      readonly status: number | undefined;
    }
  /** The provider has accepted the request; its answer is under way. */
  | { readonly kind: "accepted"; readonly attempt: Attempt; readonly warming: boolean };

/** A 2xx response to this request. */
interface Success {
  readonly status: number;
  readonly contentType: string | undefined;
}

/** Events of pi's hooks, in pi's order. */
export type HookEvent =
  /** `context_with_system`: a message list. */
  | { readonly kind: "request"; readonly requestId: string; readonly deliveryIds: readonly string[] }
  /** `before_provider_request`, which pi may call twice for one request; the last payload is sent. */
  | { readonly kind: "payload"; readonly checks: Readonly<Record<string, PayloadCheck>> }
  /** `after_provider_response`. */
  | { readonly kind: "headers"; readonly status: number; readonly contentType: string | undefined }
  /** The assistant's `message_start`. */
  | { readonly kind: "start"; readonly stopReason: string; readonly api: string; readonly failure: Failure }
  /** A `message_update` with content. */
  | { readonly kind: "content" }
  /** The assistant's `message_end`. */
  | { readonly kind: "end"; readonly stopReason: string; readonly failure: Failure }
  /** `cache_warming_decision`: even after our veto another extension may allow the request. */
  | { readonly kind: "warming" }
  /** The run has settled, or the session was replaced: no further events follow. */
  | { readonly kind: "over"; readonly failure: Failure };

/** Why a request ended without an answer. Used only in that case. */
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
 * pi's adapter that can use a WebSocket: there are no headers then, and `message_start` follows the service's first
 * event. Google's adapters have no headers either, but their `message_start` follows any 2xx response, even a login
 * page. A provider of an extension may send `start` before its request is answered.
 */
const webSocketAdapter = "openai-codex-responses";

/**
 * pi always requests a stream. Any other content type is not the model's: a network's login page, or the target of a
 * redirect, which `fetch` follows with a GET without a body.
 */
function isStream(contentType: string | undefined, api: string): boolean {
  const type = contentType?.split(";", 1)[0]?.trim().toLowerCase();
  return type === (api === "bedrock-converse-stream" ? "application/vnd.amazon.eventstream" : "text/event-stream");
}

/**
 * Determines the verdict of each attempt, as a pure state machine: `delivered` requires evidence, and each attempt ends
 * exactly once. A message list alone is only an offer: pi makes one even after an abort during a tool or without
 * credentials.
 */
export function observe(state: Observation, event: HookEvent): Step {
  switch (event.kind) {
    case "request": {
      const ended = end(state, { aborted: false, error: "pi made another request before this one was answered." });
      const { requestId, deliveryIds } = event;
      const { warming } = state;
      const payload = Object.fromEntries(deliveryIds.map((id) => [id, "unchecked" as const]));
      return {
        next: { kind: "offered", attempt: { requestId, payload }, warming, payloadSeen: false, response: "none" },
        findings: ended.findings,
      };
    }
    case "payload":
      return state.kind === "offered" ? stay({ ...withChecks(state, event.checks), payloadSeen: true }) : stay(state);
    case "headers":
      return headers(state, event);
    case "start":
      return start(state, event);
    case "content":
      return state.kind === "started" ? accept(state, "content", state.status) : stay(state);
    case "end":
      return messageEnd(state, event);
    case "warming":
      return stay({ ...state, warming: true });
    case "over":
      return end(state, event.failure);
  }
}

type Open = Extract<Observation, { kind: "offered" | "started" }>;

/** Whether an attempt has no verdict yet, so that no other request may touch the provider's hooks. */
export function isOpen(state: Observation): state is Open {
  return state.kind === "offered" || state.kind === "started";
}

function headers(state: Observation, { status, contentType }: Extract<HookEvent, { kind: "headers" }>): Step {
  if (state.kind !== "offered") return stay({ ...state, warming: false });
  const isOwn = state.payloadSeen && !state.warming && status >= 200 && status < 300;
  if (isOwn) return stay({ ...state, response: { status, contentType } });
  return stay(state.response === "none" ? { ...state, response: "any" } : state);
}

function start(state: Observation, { stopReason, api, failure }: Extract<HookEvent, { kind: "start" }>): Step {
  if (state.kind !== "offered") return stay(state);
  if (isFailure(stopReason)) return end(state, withStop(failure, stopReason));
  const { response } = state;
  const success = typeof response === "object" ? response : undefined;
  if (success !== undefined && stopReason === "pending" && isStream(success.contentType, api)) {
    return accept(state, "headers", success.status);
  }
  // A provider of an extension may use this api name and send start before its request is answered. pi's adapter has
  // shown its payload by then.
  const isByWebSocket = api === webSocketAdapter && response === "none" && state.payloadSeen;
  if (isByWebSocket && stopReason === "pending") return accept(state, "start");
  return stay({ kind: "started", attempt: state.attempt, warming: state.warming, status: success?.status });
}

function messageEnd(state: Observation, { stopReason, failure }: Extract<HookEvent, { kind: "end" }>): Step {
  if (state.kind === "none") return stay(state);
  if (!isComplete(stopReason)) return end(state, withStop(failure, stopReason));
  const { attempt } = state;
  const answered: Finding = { kind: "answered", attempt };
  const status = state.kind === "started" ? state.status : undefined;
  const findings = state.kind === "accepted" ? [answered] : [delivered(attempt, "message", status), answered];
  return { next: none(state), findings };
}

/** Ends the attempt. An accepted attempt already has its verdict. */
function end(state: Observation, failure: Failure): Step {
  if (!isOpen(state)) return stay(none(state));
  const { aborted, ...why } = failure;
  const outcome = aborted ? ("aborted" as const) : ("failed" as const);
  return { next: none(state), findings: [{ kind: "verdict", attempt: state.attempt, outcome, ...why }] };
}

function accept({ attempt }: Open, evidence: Evidence, status?: number): Step {
  return { next: { kind: "accepted", attempt, warming: false }, findings: [delivered(attempt, evidence, status)] };
}

/**
 * State after an attempt. pi cancels a warming request in favour of a newer request, so the attempt's end also ends
 * warming.
 */
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
