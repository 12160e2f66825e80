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
    firstSeq: Type.Optional({
      ...Seq,
      description: "Given where deltas were merged: the envelope stands for all from `firstSeq` to `seq`.",
    }),
    at: Timestamp,
    generation: Type.Integer({ minimum: 1, description: "Which of the session's children reported it." }),
    event: Type.Object({ type: Type.String() }, { additionalProperties: true }),
  },
  { additionalProperties: false },
);
export type Envelope = Static<typeof Envelope>;

/** A stretch of the log that can no longer be replayed. Both ends are included. */
export const Gap = Type.Object(
  {
    from: Seq,
    to: Seq,
    reason: Type.Enum(["not_retained", "daemon_restart", "store_failed", "slow_reader", "log_reset"], {
      description:
        "`not_retained`: forgotten for a bound. `daemon_restart`: a daemon ended without a word; what pi's session file " +
        "has of it follows as `rpcd_entry`. `store_failed`: numbers that nothing had. `slow_reader`: left out, " +
        "since this connection reads too slowly. `log_reset`: the cursor is of another log; all that is kept follows.",
    }),
  },
  { additionalProperties: false },
);
export type Gap = Static<typeof Gap>;
