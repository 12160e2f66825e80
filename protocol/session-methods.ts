import { DeliveryEffects } from "./delivery.ts";
import { Type } from "./json-schema.ts";
import type { MethodRow } from "./method-row.ts";
import { idempotencyKey, params, sessionIdOnly, sessionName, toolPattern } from "./params.ts";
import { ChildExit, SessionInfo, ThinkingLevel } from "./session.ts";

/** Rows of the method table about the life of sessions. */
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
      name: Type.Optional(sessionName),
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
