import type { Static } from "typebox";
import { Seq, SessionId, Timestamp } from "./ids.ts";
import { Type } from "./json-schema.ts";

/**
 * One record of pi inside its envelope. `event` is pi's own, unchanged: its shapes are pi's
 * (docs/json.md of the pi package).
 */
export const Envelope = Type.Object(
  {
    sessionId: SessionId,
    seq: Seq,
    at: Timestamp,
    generation: Type.Integer({ minimum: 1, description: "Which of the session's children reported it." }),
    event: Type.Object({ type: Type.String() }, { additionalProperties: true }),
  },
  { additionalProperties: false },
);
export type Envelope = Static<typeof Envelope>;

/** A stretch of the log that can no longer be replayed. Both ends are included. */
export const Gap = Type.Object(
  { from: Seq, to: Seq, reason: Type.Enum(["not_retained", "log_reset"]) },
  { additionalProperties: false },
);
export type Gap = Static<typeof Gap>;
