import type { Static } from "typebox";
import { By } from "./client-identity.ts";
import { PromptId, Seq, SessionId, Timestamp } from "./ids.ts";
import { Type } from "./json-schema.ts";

/** A record of pi in an envelope. `event` is pi's record, unchanged (docs/json.md of the pi package). */
export const Envelope = Type.Object(
  {
    sessionId: SessionId,
    seq: Seq,
    firstSeq: Type.Optional({
      ...Seq,
      description: "Present if deltas were merged: the envelope replaces all from `firstSeq` to `seq`.",
    }),
    at: Timestamp,
    generation: Type.Integer({ minimum: 1, description: "The generation of the child that reported it." }),
    promptId: Type.Optional({
      ...PromptId,
      description: "With `message_end` or `rpcd_entry` of a user's message: the prompt that the message is.",
    }),
    by: Type.Optional({
      ...By,
      description:
        "The client that sent this message: the prompt, or a push. Absent if no client did, or it is unknown.",
    }),
    event: Type.Object({ type: Type.String() }, { additionalProperties: true }),
  },
  { additionalProperties: false },
);
export type Envelope = Static<typeof Envelope>;

/** What the daemon knows of the origin of a message in an {@link Envelope}. */
export type MessageOrigin = Pick<Envelope, "promptId" | "by">;

/** A part of the log that can no longer be replayed. Both ends are included. */
export const Gap = Type.Object(
  {
    from: Seq,
    to: Seq,
    reason: Type.Enum(["not_retained", "daemon_restart", "store_failed", "slow_reader", "log_reset"], {
      description:
        "`not_retained`: deleted because of a limit. `daemon_restart`: a daemon was killed; the entries in pi's session " +
        "file follow as `rpcd_entry`. `store_failed`: unused numbers. `slow_reader`: omitted, " +
        "because this connection reads too slowly. `log_reset`: the cursor belongs to another log; all stored events follow.",
    }),
    onlyDeltas: Type.Optional(
      Type.Boolean({
        description: "Only high-rate records are missing: later events contain their complete content.",
      }),
    ),
  },
  { additionalProperties: false },
);
export type Gap = Static<typeof Gap>;

/** The name of a session's log. */
export const Epoch = Type.String({
  pattern: "^[!-~]{1,64}$",
  description: "The name of the session's log. Numbers are only valid in the log with this name.",
});

/** The messages of a session's branch. */
export const Snapshot = Type.Object(
  {
    messages: Type.Array(Type.Object({ role: Type.String() }, { additionalProperties: true }), {
      description:
        "The messages from the root of pi's tree of entries to its leaf, in pi's format (docs/message-types.md of pi): " +
        "the complete branch, including its summaries.",
    }),
    leafId: Type.Union([Type.String(), Type.Null()], { description: "The id of pi's entry at the end of the branch." }),
    omitted: Type.Optional(
      Type.Integer({ minimum: 1, description: "How many of the oldest messages were omitted because of their size." }),
    ),
  },
  { additionalProperties: false },
);
export type Snapshot = Static<typeof Snapshot>;
