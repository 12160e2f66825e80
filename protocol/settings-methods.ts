import { SessionId } from "./ids.ts";
import { Type } from "./json-schema.ts";
import type { MethodRow } from "./method-row.ts";
import { commandErrors, idempotencyKey, params } from "./params.ts";

const confirmShared = Type.Optional(
  Type.Boolean({
    description:
      "Must be true, else `forbidden`: it rewrites the user's shared settings file, and so changes every other pi of the user's.",
  }),
);
const QueueMode = Type.Enum(["all", "one-at-a-time"]);
const SharedSetting = Type.Object(
  {
    setting: Type.String({ description: "Which setting was written." }),
    value: Type.Union([Type.String(), Type.Boolean()]),
    file: Type.String({ description: "The file that it was written to; all pi of this user read it." }),
  },
  { additionalProperties: false },
);
const row = {
  result: SharedSetting,
  scope: "none",
  asleep: "wake",
  capability: "prompt",
  retry: "keyed",
  effect: "setting",
  since: "0.1.0",
  errors: [...commandErrors, "forbidden"],
} as const;

/**
 * Rows of the method table for the commands of pi's that rewrite the user's shared settings. pi cannot set these for one
 * process.
 */
export const settingsMethods = {
  "session/setSteeringMode": {
    summary: "Sets how many steering messages enter one request. Rewrites the user's shared settings.",
    params: params({ sessionId: SessionId, mode: QueueMode, confirmShared, idempotencyKey }),
    http: { verb: "PUT", path: "/v1/sessions/{sessionId}/settings/steering-mode" },
    ...row,
    pi: { command: "set_steering_mode", asItIs: true, setting: "steeringMode" },
  },
  "session/setFollowUpMode": {
    summary:
      "Sets how many follow-up messages are taken when the agent would stop. Rewrites the user's shared settings.",
    params: params({ sessionId: SessionId, mode: QueueMode, confirmShared, idempotencyKey }),
    http: { verb: "PUT", path: "/v1/sessions/{sessionId}/settings/follow-up-mode" },
    ...row,
    pi: { command: "set_follow_up_mode", asItIs: true, setting: "followUpMode" },
  },
  "session/setAutoCompaction": {
    summary: "Turns pi's own compaction of a full context on or off. Rewrites the user's shared settings.",
    params: params({ sessionId: SessionId, enabled: Type.Boolean(), confirmShared, idempotencyKey }),
    http: { verb: "PUT", path: "/v1/sessions/{sessionId}/settings/auto-compaction" },
    ...row,
    pi: { command: "set_auto_compaction", asItIs: true, setting: "compaction.enabled" },
  },
  "session/setAutoRetry": {
    summary: "Turns pi's own retries of failed requests on or off. Rewrites the user's shared settings.",
    params: params({ sessionId: SessionId, enabled: Type.Boolean(), confirmShared, idempotencyKey }),
    http: { verb: "PUT", path: "/v1/sessions/{sessionId}/settings/auto-retry" },
    ...row,
    pi: { command: "set_auto_retry", asItIs: true, setting: "retry.enabled" },
  },
} as const satisfies Readonly<Record<string, MethodRow>>;
