import { DeliveryEffects } from "./delivery.ts";
import { Type } from "./json-schema.ts";
import type { MethodRow } from "./method-row.ts";
import { childErrors, message, params, sessionIdOnly } from "./params.ts";
import { IfRunning, PromptResult } from "./session.ts";

/** Rows of the method table about users' messages and the runs they start. */
export const promptMethods = {
  "session/prompt": {
    summary: "Gives pi a user's prompt. Returns when pi has taken it, not when the run has ended.",
    params: params({
      ...message,
      ifRunning: Type.Optional({ ...IfRunning, description: "What to do when a run is on. Default: refuse." }),
    }),
    result: PromptResult,
    scope: "session",
    capability: "prompt",
    since: "0.1.0",
    errors: [...childErrors, "session_busy", "refused_by_pi", "forbidden", "conflict"],
  },
  "session/steer": {
    summary: "Puts a user's message into the running agent before its next request. While idle it acts as a prompt.",
    params: params(message),
    result: PromptResult,
    scope: "session",
    capability: "prompt",
    since: "0.1.0",
    errors: [...childErrors, "session_busy", "refused_by_pi", "forbidden", "conflict"],
  },
  "session/followUp": {
    summary: "Gives the agent a user's message for when it would stop. While idle it acts as a prompt.",
    params: params(message),
    result: PromptResult,
    scope: "session",
    capability: "prompt",
    since: "0.1.0",
    errors: [...childErrors, "session_busy", "refused_by_pi", "forbidden", "conflict"],
  },
  "session/abort": {
    summary: "Aborts the run and returns when the session is idle. Overtakes waiting calls, never a prompt under way.",
    params: sessionIdOnly,
    result: Type.Object(
      {
        aborted: Type.Boolean({ description: "Whether there was a run to abort." }),
        deliveries: DeliveryEffects,
      },
      { additionalProperties: false },
    ),
    scope: "session",
    capability: "prompt",
    since: "0.1.0",
    errors: ["session_not_found", "child_exited", "overloaded", "refused_by_pi", "deadline_exceeded"],
  },
  "session/clearQueue": {
    summary: "Empties pi's queue of users' messages, and drops the pushes that are to go with it.",
    params: sessionIdOnly,
    result: Type.Object(
      {
        steering: Type.Array(Type.String(), { description: "The texts that were queued by `steer`." }),
        followUp: Type.Array(Type.String(), { description: "The texts that were queued by `followUp`." }),
        deliveries: DeliveryEffects,
      },
      { additionalProperties: false },
    ),
    scope: "session",
    capability: "prompt",
    since: "0.1.0",
    errors: ["session_not_found", "session_closed", "child_exited", "overloaded", "refused_by_pi", "unsupported_by_pi"],
  },
} as const satisfies Readonly<Record<string, MethodRow>>;
