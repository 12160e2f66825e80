import type { Static } from "typebox";
import { DeliveryState } from "./delivery.ts";
import { Dialog, DialogId } from "./dialog.ts";
import { Epoch } from "./event.ts";
import { DeliveryId, RunId, SessionId, Timestamp } from "./ids.ts";
import { Type } from "./json-schema.ts";
import { RunOutcome } from "./prompt.ts";

/** A position in the feed. */
export const FeedSeq = Type.Integer({ minimum: 0, description: "A position in the daemon's feed. It only grows." });

export const FeedEpoch = {
  ...Epoch,
  description: "The name of the daemon's feed. Numbers are only valid in the feed with this name.",
};

/** Position of the feed. */
export const FeedPlace = Type.Object(
  { cursor: { ...FeedSeq, description: "The number of the feed's newest event." }, epoch: FeedEpoch },
  { additionalProperties: false },
);
export type FeedPlace = Static<typeof FeedPlace>;

const states = new Set([
  ...(["created", "changed", "closed"] as const),
  ...RunOutcome.enum,
  ...DeliveryState.enum,
  ...Dialog.properties.state.enum,
]);

/** An event of any session: a reference, without content. */
export const DaemonEvent = Type.Object(
  {
    seq: FeedSeq,
    after: {
      ...FeedSeq,
      description:
        "The previous number on this connection: of the event before, the end of a gap, or the cursor. Numbers in between belong to sessions that the token cannot see.",
    },
    at: { ...Timestamp, description: "When it was stored, in Unix milliseconds." },
    kind: Type.Enum(["session", "run", "delivery", "dialog"]),
    state: Type.Enum([...states], {
      description:
        "For a session `created`, `changed` or `closed`; for a run its outcome; for a delivery its first settled state, " +
        "and each later one; for a dialog `open` or `resolved`.",
    }),
    sessionId: SessionId,
    runId: Type.Optional({ ...RunId, description: "For an ended run: its id." }),
    deliveryId: Type.Optional({ ...DeliveryId, description: "Of a delivery." }),
    dialogId: Type.Optional({ ...DialogId, description: "Of a dialog." }),
  },
  { additionalProperties: false },
);
export type DaemonEvent = Static<typeof DaemonEvent>;

/** Numbers of the feed that cannot be replayed. Both ends are included. */
export const FeedGap = Type.Object(
  {
    from: FeedSeq,
    to: FeedSeq,
    reason: Type.Enum(["not_retained", "log_reset"], {
      description:
        "`not_retained`: deleted because of a limit. `log_reset`: the cursor belongs to another feed; all stored events follow.",
    }),
  },
  { additionalProperties: false },
);
export type FeedGap = Static<typeof FeedGap>;
