import { DeliveryEffects } from "./delivery.ts";
import { Gap } from "./event.ts";
import { Seq, SessionId } from "./ids.ts";
import { Type } from "./json-schema.ts";
import type { MethodRow } from "./method-row.ts";
import { childErrors, idempotencyKey, message, params, sessionIdOnly, toolPattern } from "./params.ts";
import { ProviderLevel } from "./provider.ts";
import { ChildExit, IfRunning, PromptResult, SessionInfo, ThinkingLevel } from "./session.ts";

/** Rows of the method table about sessions. */
export const sessionMethods = {
  "session/create": {
    summary: "Creates a session and starts its pi. Returns when pi and the helper extension are ready.",
    params: params({
      cwd: Type.String({ minLength: 1, description: "Absolute path of an existing directory." }),
      model: Type.Optional(
        Type.String({
          pattern: "^[^-\\s][^\\s]{0,255}$",
          description: "`provider/id`, or a pattern as pi's `--model` takes it. Default: pi's own choice.",
        }),
      ),
      thinking: Type.Optional(ThinkingLevel),
      name: Type.Optional(
        Type.String({
          pattern: "^[^-\\u0000-\\u001f][^\\u0000-\\u001f]{0,199}$",
          description: "A name for lists, also in pi's own.",
        }),
      ),
      tools: Type.Optional(Type.Array(toolPattern(), { maxItems: 256, description: "The tools the model may call." })),
      excludeTools: Type.Optional(
        Type.Array(toolPattern(), { maxItems: 256, description: "Tools the model may not call." }),
      ),
      approve: Type.Optional(
        Type.Boolean({ description: "Trust the project's own pi settings and extensions. Default: false." }),
      ),
      idempotencyKey,
    }),
    result: SessionInfo,
    scope: "none",
    capability: "prompt",
    since: "0.1.0",
    errors: [
      "cwd_invalid",
      "model_not_found",
      "pi_not_found",
      "pi_too_old",
      "start_failed",
      "link_failed",
      "conflict",
      "overloaded",
      "shutting_down",
    ],
  },
  "session/list": {
    summary: "All sessions that are not closed, the newest first.",
    params: params({
      cwd: Type.Optional(Type.String({ minLength: 1, description: "Only sessions of this directory." })),
    }),
    result: Type.Object({ sessions: Type.Array(SessionInfo) }, { additionalProperties: false }),
    scope: "none",
    capability: "observe",
    since: "0.1.0",
    errors: [],
  },
  "session/get": {
    summary: "One session as it is now.",
    params: sessionIdOnly,
    result: SessionInfo,
    scope: "none",
    capability: "observe",
    since: "0.1.0",
    errors: ["session_not_found"],
  },
  "session/subscribe": {
    summary: "Sends the session's notifications to this connection: first those after the cursor, then live ones.",
    params: params({
      sessionId: SessionId,
      after: Type.Optional({
        ...Seq,
        description: "The last seq that the client has. Default: the session's present cursor (nothing is replayed).",
      }),
      provider: Type.Optional(ProviderLevel),
    }),
    result: Type.Object(
      {
        cursor: { ...Seq, description: "The newest seq at the moment of the call. All later ones follow live." },
        gap: Type.Optional(Gap),
      },
      { additionalProperties: false },
    ),
    scope: "none",
    capability: "observe",
    since: "0.1.0",
    errors: ["session_not_found", "invalid_request"],
  },
  "session/unsubscribe": {
    summary: "Ends this connection's subscription. Not being subscribed is no error.",
    params: sessionIdOnly,
    result: Type.Object({ wasSubscribed: Type.Boolean() }, { additionalProperties: false }),
    scope: "none",
    capability: "observe",
    since: "0.1.0",
    errors: ["invalid_request"],
  },
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
  "session/command": {
    summary: "Sends any other command of pi's RPC as it is, and returns its data.",
    params: params({
      sessionId: SessionId,
      command: Type.Object(
        { type: Type.String({ pattern: "^[a-z][a-z0-9_]{0,63}$" }) },
        { additionalProperties: true, description: "pi's command record without `id` (docs/rpc-commands.md of pi)." },
      ),
      confirmShared: Type.Optional(
        Type.Boolean({
          description:
            "Needed for the commands that rewrite the user's shared pi settings (set_steering_mode, set_follow_up_mode, set_auto_retry, set_auto_compaction).",
        }),
      ),
    }),
    result: Type.Object(
      {
        data: Type.Optional(Type.Unknown({ description: "pi's `data`, where it gave some." })),
        deliveries: Type.Optional({
          ...DeliveryEffects,
          description: "With `compact`: the deliveries that were under way before the call, as they are behind it.",
        }),
      },
      { additionalProperties: false },
    ),
    scope: "none",
    capability: "prompt",
    since: "0.1.0",
    errors: [...childErrors, "refused_by_pi", "forbidden", "unsupported_by_pi"],
  },
  "session/close": {
    summary: "Ends the session's pi and forgets the session. Its file stays, unless no message was ever written to it.",
    params: sessionIdOnly,
    result: Type.Object(
      { exit: Type.Optional(ChildExit), deliveries: DeliveryEffects },
      { additionalProperties: false },
    ),
    scope: "none",
    capability: "prompt",
    since: "0.1.0",
    errors: ["session_not_found"],
  },
} as const satisfies Readonly<Record<string, MethodRow>>;
