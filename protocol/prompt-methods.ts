import { By } from "./client-identity.ts";
import { DeliveryEffects } from "./delivery.ts";
import { PromptId, RunId, Seq, SessionId } from "./ids.ts";
import { Type } from "./json-schema.ts";
import type { MethodRow } from "./method-row.ts";
import { childErrors, ifAlone, message, params, sessionIdOnly } from "./params.ts";
import { IfRunning, Prompt, PromptResult, PromptState } from "./prompt.ts";
import { SessionState } from "./session.ts";

/** How long a call waits for the end of what it has begun. */
const timeoutMs = Type.Optional(
  Type.Integer({ minimum: 0, maximum: 86_400_000, default: 600_000, description: "Bound of the wait." }),
);
const userMessage = {
  ...message,
  promptId: Type.Optional({
    ...PromptId,
    description:
      "Chosen by the client, else a UUIDv7. Same id and content: the same receipt. Other content: `conflict`.",
  }),
  wait: Type.Optional(
    Type.Enum(["settled"], {
      description: "Answer only when the run that takes the prompt in has ended, with its outcome and final text.",
    }),
  ),
  timeoutMs: Type.Optional({ ...timeoutMs, default: 600_000, description: "With `wait`." }),
};
const expectedRunId = Type.Optional({
  ...RunId,
  description: "Refused with `run_mismatch` unless this run is active. Default: any run.",
});
const queueParams = { ...userMessage, expectedRunId };
const promptErrors = [
  ...childErrors,
  "session_busy",
  "refused_by_pi",
  "forbidden",
  "conflict",
  "prompt_lost",
  "deadline_exceeded",
  "budget_exceeded",
] as const;

function queuedPrompts(description: string) {
  const message = Type.Object(
    {
      promptId: Type.Optional({ ...PromptId, description: "Absent: an extension has queued it." }),
      text: Type.String({ description: "What pi will take in: templates and extensions may have rewritten it." }),
      by: Type.Optional(By),
    },
    { additionalProperties: false },
  );
  return Type.Array(message, { description });
}

const promptSubjects = [
  { kind: "session", param: "sessionId" },
  { kind: "prompt", param: "promptId", isChosen: true },
] as const;
/** Facts about the methods that send a user's message. */
const sends = {
  scope: "session",
  asleep: "wake",
  rate: "prompts",
  capability: "prompt",
  subjects: promptSubjects,
  retry: "keyed",
  effect: "prompt",
  since: "0.1.0",
} as const;

/** Rows of the method table about users' messages and the runs they start. */
export const promptMethods = {
  "session/prompt": {
    summary: "Sends a user's prompt to pi. Returns when pi has accepted it; with `wait`, when the run has ended.",
    params: params({
      ...userMessage,
      text: { ...userMessage.text, minLength: 0 },
      ifRunning: Type.Optional({ ...IfRunning, default: "refuse", description: "What to do when a run is on." }),
    }),
    result: PromptResult,
    http: { verb: "POST", path: "/v1/sessions/{sessionId}/prompts" },
    ...sends,
    errors: promptErrors,
    pi: { command: "prompt", asItIs: false },
  },
  "session/steer": {
    summary: "Puts a user's message into the running agent before its next request. While idle it acts as a prompt.",
    params: params({
      ...queueParams,
      ifIdle: Type.Optional(
        Type.Enum(["prompt", "refuse"], {
          default: "prompt",
          description: "What to do when no run is on; `refuse`: `session_idle`.",
        }),
      ),
    }),
    result: PromptResult,
    http: { verb: "POST", path: "/v1/sessions/{sessionId}/steer" },
    ...sends,
    errors: [...promptErrors, "run_mismatch", "session_idle"],
    pi: { command: "steer", asItIs: false },
  },
  "session/followUp": {
    summary: "Queues a user's message until the agent would stop. While idle it acts as a prompt.",
    params: params(queueParams),
    result: PromptResult,
    http: { verb: "POST", path: "/v1/sessions/{sessionId}/follow-up" },
    ...sends,
    errors: [...promptErrors, "run_mismatch"],
    pi: { command: "follow_up", asItIs: false },
  },
  "session/abort": {
    summary: "Aborts the run and returns when the session is idle. Overtakes waiting calls, never a prompt under way.",
    params: params({ sessionId: SessionId, expectedRunId, ifAlone }),
    result: Type.Object(
      {
        aborted: Type.Boolean({ description: "Whether there was a run to abort." }),
        deliveries: DeliveryEffects,
      },
      { additionalProperties: false },
    ),
    http: { verb: "POST", path: "/v1/sessions/{sessionId}/abort" },
    scope: "session",
    capability: "prompt",
    since: "0.1.0",
    errors: [
      "session_not_found",
      "child_exited",
      "overloaded",
      "refused_by_pi",
      "deadline_exceeded",
      "run_mismatch",
      "session_busy",
    ],
    // Another run may be active by then.
    retry: "never",
    pi: { command: "abort", asItIs: false },
  },
  "session/clearQueue": {
    summary: "Empties pi's queue of users' messages, and drops pushes with `onClearQueue: drop`.",
    params: sessionIdOnly,
    result: Type.Object(
      {
        steering: Type.Array(Type.String(), { description: "The texts that were queued by `steer`." }),
        followUp: Type.Array(Type.String(), { description: "The texts that were queued by `followUp`." }),
        deliveries: DeliveryEffects,
      },
      { additionalProperties: false },
    ),
    http: { verb: "DELETE", path: "/v1/sessions/{sessionId}/queue" },
    scope: "session",
    capability: "prompt",
    since: "0.1.0",
    errors: ["session_not_found", "session_closed", "child_exited", "overloaded", "refused_by_pi", "unsupported_by_pi"],
    retry: "never",
    pi: { command: "clear_queue", asItIs: false },
  },
  "session/getQueue": {
    summary: "pi's queue of users' messages, of all clients, in the order in which pi takes them in.",
    params: sessionIdOnly,
    result: Type.Object(
      {
        steering: queuedPrompts("Those that pi takes in before its next request, in their order."),
        followUp: queuedPrompts("Those that pi takes in when it would stop, after `steering`, in their order."),
      },
      { additionalProperties: false },
    ),
    http: { verb: "GET", path: "/v1/sessions/{sessionId}/queue" },
    scope: "none",
    capability: "observe",
    since: "0.1.0",
    errors: ["session_not_found"],
    retry: "safe",
  },
  "prompt/cancel": {
    summary: "Withdraws a prompt from pi's queue. The result says whether it was withdrawn.",
    params: params({ promptId: PromptId }),
    result: Type.Object(
      { cancelled: Type.Boolean({ description: "False: it was too late in this state." }), prompt: Prompt },
      { additionalProperties: false },
    ),
    http: { verb: "POST", path: "/v1/prompts/{promptId}/cancel" },
    scope: "session",
    capability: "prompt",
    since: "0.1.0",
    errors: [
      "prompt_not_found",
      "session_busy",
      "session_closed",
      "child_exited",
      "overloaded",
      "refused_by_pi",
      "unsupported_by_pi",
      "link_failed",
      "cancelled",
    ],
    retry: "never",
  },
  "session/waitForIdle": {
    summary: "Returns when the session is idle: no run, no compaction, and no waiting call, prompt or push.",
    params: params({ sessionId: SessionId, timeoutMs }),
    result: Type.Object({ state: SessionState, cursor: Seq }, { additionalProperties: false }),
    http: { verb: "GET", path: "/v1/sessions/{sessionId}/idle" },
    scope: "none",
    capability: "observe",
    since: "0.1.0",
    errors: ["session_not_found", "session_closed", "deadline_exceeded"],
    retry: "safe",
  },
  "prompt/get": {
    summary: "One prompt in its current state, with its full text while that is stored nowhere else.",
    params: params({ promptId: PromptId }),
    result: Prompt,
    http: { verb: "GET", path: "/v1/prompts/{promptId}" },
    scope: "none",
    capability: "observe",
    since: "0.1.0",
    errors: ["prompt_not_found"],
    retry: "safe",
  },
  "prompt/wait": {
    summary: "Returns when the prompt and its run are over, like `wait`. A timeout cancels nothing.",
    params: params({ promptId: PromptId, timeoutMs }),
    result: PromptResult,
    http: { verb: "GET", path: "/v1/prompts/{promptId}/result" },
    scope: "none",
    capability: "observe",
    since: "0.1.0",
    errors: ["prompt_not_found", "session_closed", "deadline_exceeded"],
    retry: "safe",
  },
  "prompt/list": {
    summary: "A session's prompts, the newest first, with the beginnings of their texts.",
    params: params({
      sessionId: SessionId,
      states: Type.Optional(Type.Array(PromptState, { maxItems: 8, description: "Only those. Default: all." })),
      limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 500, default: 100 })),
    }),
    result: Type.Object({ prompts: Type.Array(Prompt) }, { additionalProperties: false }),
    http: { verb: "GET", path: "/v1/sessions/{sessionId}/prompts" },
    scope: "none",
    capability: "observe",
    since: "0.1.0",
    errors: ["session_not_found"],
    retry: "safe",
  },
} as const satisfies Readonly<Record<string, MethodRow>>;
