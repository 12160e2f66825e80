import type { Static } from "typebox";
import { By } from "./client-identity.ts";
import { Timestamp } from "./ids.ts";
import { Type } from "./json-schema.ts";

/** Who may change something in a session. */
export const ControlPolicy = Type.Enum(["shared", "exclusive"], {
  description: "`shared`: every client may act. `exclusive`: only the controller; others get `not_controller`.",
});
export type ControlPolicy = Static<typeof ControlPolicy>;

/** Who controls a session. */
export const Control = Type.Object(
  {
    policy: ControlPolicy,
    controller: Type.Optional({ ...By, description: "The controller. Absent if there is none." }),
    expiresAt: Type.Optional({ ...Timestamp, description: "When the lease ends, unless it is renewed." }),
  },
  { additionalProperties: false },
);
export type Control = Static<typeof Control>;

/** Why the control of a session has changed. */
export const ControlChange = Type.Enum(
  ["acquired", "taken_over", "handed_over", "released", "expired", "disconnected", "policy"],
  { description: "`disconnected`: the controller had no connection for longer than the grace period." },
);
export type ControlChange = Static<typeof ControlChange>;
