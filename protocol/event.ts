import type { Static } from "typebox";
import { Seq, SessionId, Timestamp } from "./ids.ts";
import { Type } from "./json-schema.ts";

/** A record of pi in an envelope. `event` is pi's own, unchanged (docs/json.md of the pi package). */
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
    onlyDeltas: Type.Optional(
      Type.Boolean({
        description: "Nothing but high-rate records is missing: what they were about is whole in later events.",
      }),
    ),
  },
  { additionalProperties: false },
);
export type Gap = Static<typeof Gap>;

/** The name of a session's log. */
export const Epoch = Type.String({
  pattern: "^[!-~]{1,64}$",
  description: "The name of the session's log. Numbers are meaningless in a log with another name.",
});

/** The messages of a session's branch. */
export const Snapshot = Type.Object(
  {
    messages: Type.Array(Type.Object({ role: Type.String() }, { additionalProperties: true }), {
      description:
        "The messages from the root of pi's tree of entries to its leaf, as pi has them (docs/message-types.md of pi): " +
        "the whole branch, with summaries where they were made.",
    }),
    leafId: Type.Union([Type.String(), Type.Null()], { description: "The id of pi's entry at the end of the branch." }),
    omitted: Type.Optional(
      Type.Integer({ minimum: 1, description: "How many of the oldest messages were left out for their size." }),
    ),
  },
  { additionalProperties: false },
);
export type Snapshot = Static<typeof Snapshot>;
