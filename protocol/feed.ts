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
  description: "The name of the daemon's feed. Numbers are meaningless in a feed with another name.",
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
        "The number before it that this connection has: that of the event before, the end of a gap, or its cursor. Numbers between are of sessions that its token does not know.",
    },
    at: { ...Timestamp, description: "When it was stored, in Unix milliseconds." },
    kind: Type.Enum(["session", "run", "delivery", "dialog"]),
    state: Type.Enum([...states], {
      description:
        "Of a session `created`, `changed` or `closed`; of a run its outcome; of a delivery the state in which it is " +
        "settled, and each later one; of a dialog `open` or `resolved`.",
    }),
    sessionId: SessionId,
    runId: Type.Optional({ ...RunId, description: "Of a run that has ended." }),
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
        "`not_retained`: forgotten for a bound. `log_reset`: the cursor is of another feed; all that is kept follows.",
    }),
  },
  { additionalProperties: false },
);
export type FeedGap = Static<typeof FeedGap>;
