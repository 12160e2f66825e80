import { DeliveryEffects } from "./delivery.ts";
import { SessionId } from "./ids.ts";
import { Type } from "./json-schema.ts";
import type { MethodRow } from "./method-row.ts";
import { childErrors, params } from "./params.ts";

/** Rows of the method table about pi's own commands. */
export const commandMethods = {
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
} as const satisfies Readonly<Record<string, MethodRow>>;
