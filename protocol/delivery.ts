import type { Static } from "typebox";
import { By } from "./client-identity.ts";
import { Content } from "./content.ts";
import { DeliveryId, SessionId, Timestamp } from "./ids.ts";
import { Type } from "./json-schema.ts";

export const DeliverAs = Type.Enum(["steer", "followUp", "nextTurn"], {
  description:
    "During a run: `steer` enters the next request, `followUp` comes when the run would end. `nextTurn` waits for the next prompt.",
});
export type DeliverAs = Static<typeof DeliverAs>;

const stateNames = [
  "accepted",
  "held",
  "inserted",
  "prepared",
  "delivered",
  "answered",
  "parked",
  "dropped",
  "cancelled",
  "expired",
  "failed",
  "unknown",
] as const;
export type DeliveryState = (typeof stateNames)[number];
export const DeliveryState = Type.Enum(stateNames);

/** Evidence for `delivered` or `answered`. */
export const Evidence = Type.Enum(["headers", "start", "content", "message"], {
  description:
    "`headers`: the provider answered 2xx with the content type of its stream. `start`: the first event over a WebSocket. `content`: the first content of the answer. `message`: the whole answer.",
});
export type Evidence = Static<typeof Evidence>;

/** Whether the pushed content was found in the payload sent to the provider. */
export const PayloadCheck = Type.Enum(["confirmed", "unverified", "unchecked"]);
export type PayloadCheck = Static<typeof PayloadCheck>;

/** One request to the provider that carried the push. */
export const Attempt = Type.Object(
  {
    requestId: Type.String(),
    n: Type.Integer({ minimum: 1 }),
    preparedAt: Timestamp,
    payload: PayloadCheck,
    outcome: Type.Optional(
      Type.Enum(["delivered", "failed", "aborted", "unknown"], {
        description:
          "Absent while the attempt is open. `unknown`: the child died before the verdict, or the payload lacked the push.",
      }),
    ),
    endedAt: Type.Optional(Timestamp),
    status: Type.Optional(Type.Integer({ description: "HTTP status, if the provider's API has one." })),
    evidence: Type.Optional(Evidence),
    error: Type.Optional(Type.String({ description: "The provider's error text, at most 1 KiB." })),
  },
  { additionalProperties: false },
);
export type Attempt = Static<typeof Attempt>;

const reasonCodes = [
  "abort",
  "run_failed",
  "interrupted",
  "unverified",
  "unanswered_error",
  "unanswered_aborted",
  "clear_queue",
  "session_replaced",
  "policy",
  "removed_by_extension",
  "off_branch",
  "compacted",
  "session_lost",
  "session_closed",
  "link_failed",
  "refused_by_pi",
  "not_started",
  "dialog",
  "cancelled",
  "expired",
] as const;
export type ReasonCode = (typeof reasonCodes)[number];

/** Why a delivery is in its state: a code for programs and a sentence for people. */
export const Reason = Type.Object(
  { code: Type.Enum(reasonCodes), message: Type.String() },
  { additionalProperties: false },
);
export type Reason = Static<typeof Reason>;

export const HistoryStep = Type.Object(
  {
    state: DeliveryState,
    at: Timestamp,
    requestId: Type.Optional(Type.String()),
    evidence: Type.Optional(Evidence),
    reason: Type.Optional(Reason),
    by: Type.Optional(By),
  },
  { additionalProperties: false },
);
export type HistoryStep = Static<typeof HistoryStep>;

export const Delivery = Type.Object(
  {
    deliveryId: DeliveryId,
    sessionId: SessionId,
    state: DeliveryState,
    customType: Type.String(),
    preview: Type.Optional(
      Type.String({
        description:
          "The first 200 characters of its text, empty if it has only images. Absent if an older daemon accepted it.",
      }),
    ),
    content: Type.Optional({ ...Content, description: "What was pushed; only from `delivery/get` with `content`." }),
    deliverAs: DeliverAs,
    triggerTurn: Type.Boolean(),
    attempts: Type.Array(Attempt, { description: "At most the 32 newest." }),
    evidence: Type.Optional(Evidence),
    reason: Type.Optional(Reason),
    redelivered: Type.Optional(
      Type.Boolean({
        description: "An earlier attempt's verdict was lost with its child, so the model may have seen it before.",
      }),
    ),
    history: Type.Array(HistoryStep, { description: "The states it went through, at most the 64 newest." }),
    createdAt: Timestamp,
    updatedAt: Timestamp,
    insertedAt: Type.Optional({
      ...Timestamp,
      description: "When it was inserted into the transcript. Absent if it was not. Kept when `history` is shortened.",
    }),
    expiresAt: Type.Optional({
      ...Timestamp,
      description: "When it expires if it is not in the transcript by then.",
    }),
    settledAt: Type.Optional(Timestamp),
  },
  { additionalProperties: false },
);
export type Delivery = Static<typeof Delivery>;

/** Effect of a call on a delivery that was open before it. */
export const DeliveryEffect = Type.Object(
  { deliveryId: DeliveryId, state: DeliveryState, reason: Type.Optional(Reason) },
  { additionalProperties: false },
);
export type DeliveryEffect = Static<typeof DeliveryEffect>;

/** Part of the result of calls that can affect the session's pushes. */
export const DeliveryEffects = Type.Array(DeliveryEffect, {
  description: "The deliveries open before the call, in their state after it.",
});
export type DeliveryEffects = Static<typeof DeliveryEffects>;

export const WaitUntil = Type.Enum(["inserted", "prepared", "delivered", "answered"]);
export type WaitUntil = Static<typeof WaitUntil>;
