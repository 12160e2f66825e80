import type { Static, TSchema } from "typebox";
import { By } from "./client-identity.ts";
import { ContextError } from "./context-option.ts";
import { Control, ControlChange } from "./control.ts";
import { ForeignWrite, ForeignWriteAction } from "./custody.ts";
import { Delivery } from "./delivery.ts";
import { Dialog, DialogEnd, DialogUnsupported, DialogUpdate } from "./dialog.ts";
import { Envelope, Gap } from "./event.ts";
import { DaemonEvent, FeedGap } from "./feed.ts";
import { Seq, SessionId, Timestamp } from "./ids.ts";
import { Type } from "./json-schema.ts";
import { BudgetReached, CacheBroken, CostCheckpointed, Degraded } from "./optimisation/notices.ts";
import { PendingItem } from "./pending.ts";
import { PromptUpdated, RunEnded, RunStarted } from "./prompt.ts";
import { RequestDelivered, RequestFailed, RequestPrepared } from "./provider.ts";
import { PruningChanged, PruningDegraded, PruningNudged } from "./pruning/notices.ts";
import { LostPrompt, SessionInfo } from "./session.ts";
import { SessionLabelled, SessionNavigated } from "./tree.ts";

export interface NotificationRow {
  readonly summary: string;
  readonly params: TSchema;
  readonly since: string;
}

/**
 * What a connection gets for the sessions that it has subscribed to. All of a session's share one `seq`, but those of
 * `provider/`: only who asks for them gets them, and what others get has no holes.
 */
export const notifications = {
  "daemon/sessionChanged": {
    summary:
      "A session was created, has changed or was closed: for lists that stay current, after `daemon/subscribe`. It has no `seq`. Changes that follow each other closely are one notification, with the session as it is then.",
    params: Type.Object(
      {
        sessionId: SessionId,
        change: Type.Enum(["created", "changed", "closed"]),
        session: Type.Optional({ ...SessionInfo, description: "Absent when it was closed." }),
      },
      { additionalProperties: false },
    ),
    since: "0.1.0",
  },
  "daemon/event": {
    summary:
      "Something has happened in one of all sessions, in the order in which it was stored, after `daemon/subscribe` with `after`. A reference: what it is about is read by its id.",
    params: DaemonEvent,
    since: "0.1.0",
  },
  "daemon/gap": {
    summary: "Numbers of the daemon's feed that cannot be replayed, in their place of the order.",
    params: FeedGap,
    since: "0.1.0",
  },
  "session/event": {
    summary: "Something pi reported, in the order in which pi reported it.",
    params: Envelope,
    since: "0.1.0",
  },
  "session/gap": {
    summary: "Numbers of the session's log that are not sent to this connection, in their place of the order.",
    params: Type.Object({ sessionId: SessionId, ...Gap.properties }, { additionalProperties: false }),
    since: "0.1.0",
  },
  "session/updated": {
    summary: "The session changed: its state, model, child, name.",
    params: Type.Object(
      {
        sessionId: SessionId,
        seq: Seq,
        at: Timestamp,
        by: Type.Optional(By),
        session: SessionInfo,
        lostPrompts: Type.Optional(
          Type.Array(LostPrompt, { description: "Prompts that pi had accepted and that its end has lost." }),
        ),
        restored: Type.Optional(
          Type.Literal(true, {
            description:
              "An ephemeral session has another pi, which has the session's context alone: what was said since is lost.",
          }),
        ),
      },
      { additionalProperties: false },
    ),
    since: "0.1.0",
  },
  "session/replaced": {
    summary: "Another session has taken over this one's pi: by a fork or clone, or because an extension replaced it.",
    params: Type.Object(
      {
        sessionId: SessionId,
        seq: Seq,
        at: Timestamp,
        from: { ...SessionId, description: "This session. It goes on as one that has hibernated." },
        to: { ...SessionId, description: "The session that is in the pi now." },
      },
      { additionalProperties: false },
    ),
    since: "0.1.0",
  },
  "session/navigated": {
    summary: "The session goes on from another entry of its tree: a client has moved there, or an extension.",
    params: Type.Object(
      { sessionId: SessionId, seq: Seq, at: Timestamp, by: Type.Optional(By), ...SessionNavigated.properties },
      { additionalProperties: false },
    ),
    since: "0.1.0",
  },
  "session/labelled": {
    summary: "A client or an extension has set or removed the label of an entry.",
    params: Type.Object(
      { sessionId: SessionId, seq: Seq, at: Timestamp, by: Type.Optional(By), ...SessionLabelled.properties },
      { additionalProperties: false },
    ),
    since: "0.1.0",
  },
  "session/foreignWrite": {
    summary: "Another program has written to the session's file.",
    params: Type.Object(
      {
        sessionId: SessionId,
        seq: Seq,
        at: Timestamp,
        write: ForeignWrite,
        action: ForeignWriteAction,
        to: Type.Optional({ ...SessionId, description: "With `forked`: the session that goes on with its branch." }),
      },
      { additionalProperties: false },
    ),
    since: "0.1.0",
  },
  "session/controlChanged": {
    summary: "Who controls the session, or whether that matters, has changed.",
    params: Type.Object(
      { sessionId: SessionId, seq: Seq, at: Timestamp, by: Type.Optional(By), control: Control, change: ControlChange },
      { additionalProperties: false },
    ),
    since: "0.1.0",
  },
  "prompt/updated": {
    summary: "A prompt of the session has come further.",
    params: PromptUpdated,
    since: "0.1.0",
  },
  "run/started": {
    summary: "A run has begun.",
    params: RunStarted,
    since: "0.1.0",
  },
  "run/ended": {
    summary: "A run has ended. Each that began ends exactly once, also by the end of pi or of the daemon.",
    params: RunEnded,
    since: "0.1.0",
  },
  "delivery/updated": {
    summary: "A delivery of the session changed its state.",
    params: Type.Object(
      { sessionId: SessionId, seq: Seq, at: Timestamp, by: Type.Optional(By), delivery: Delivery },
      { additionalProperties: false },
    ),
    since: "0.1.0",
  },
  "provider/requestPrepared": {
    summary:
      "A request leaves for the model's provider. Exactly one of the two others follows with the same requestId.",
    params: RequestPrepared,
    since: "0.1.0",
  },
  "provider/requestDelivered": {
    summary: "The provider has accepted a request, with this evidence.",
    params: RequestDelivered,
    since: "0.1.0",
  },
  "provider/requestFailed": {
    summary: "A request ended without the provider's acceptance, as far as can be known.",
    params: RequestFailed,
    since: "0.1.0",
  },
  "dialog/opened": {
    summary: "An extension asks something. Everybody subscribed hears of it; `dialog/respond` answers it.",
    params: Type.Object(
      { sessionId: SessionId, seq: Seq, at: Timestamp, dialog: Dialog },
      { additionalProperties: false },
    ),
    since: "0.1.0",
  },
  "dialog/updated": {
    summary: "A dialog's owner has left before `openToOthersAt`: all clients may answer it now.",
    params: Type.Object(
      { sessionId: SessionId, seq: Seq, at: Timestamp, ...DialogUpdate },
      { additionalProperties: false },
    ),
    since: "0.1.0",
  },
  "dialog/resolved": {
    summary: "A dialog has ended. One that could not be offered to anybody has no `dialog/opened` before it.",
    params: Type.Object(
      { sessionId: SessionId, seq: Seq, at: Timestamp, ...DialogEnd },
      { additionalProperties: false },
    ),
    since: "0.1.0",
  },
  "dialog/unsupported": {
    summary:
      "An extension has called `ctx.ui.custom()`, which needs a terminal: it got `undefined`, or an error where `customUi` is `throw`.",
    params: Type.Object(
      { sessionId: SessionId, seq: Seq, at: Timestamp, ...DialogUnsupported.properties },
      { additionalProperties: false },
    ),
    since: "0.1.0",
  },
  "pending/updated": {
    summary: "What extensions inside pi have in the background: all of it, at each change. For display only.",
    params: Type.Object(
      { sessionId: SessionId, seq: Seq, at: Timestamp, pending: Type.Array(PendingItem, { maxItems: 100 }) },
      { additionalProperties: false },
    ),
    since: "0.1.0",
  },
  "context/failed": {
    summary: "A session has started without the context that it was to have, since `context.onError` is `warn`.",
    params: Type.Object(
      { sessionId: SessionId, seq: Seq, at: Timestamp, error: ContextError },
      { additionalProperties: false },
    ),
    since: "0.1.0",
  },
  "cache/broken": {
    summary: "A request could not use what the provider had cached of the one before. Only with the part `cache`.",
    params: Type.Object(
      { sessionId: SessionId, seq: Seq, at: Timestamp, ...CacheBroken.properties },
      { additionalProperties: false },
    ),
    since: "0.1.0",
  },
  "cost/checkpointed": {
    summary: "What was spent since the last checkpoint. Only with the part `cost`.",
    params: Type.Object(
      { sessionId: SessionId, seq: Seq, at: Timestamp, ...CostCheckpointed.properties },
      { additionalProperties: false },
    ),
    since: "0.1.0",
  },
  "cost/budgetReached": {
    summary: "A budget is nearly spent, or spent. Only with the part `cost`.",
    params: Type.Object(
      { sessionId: SessionId, seq: Seq, at: Timestamp, ...BudgetReached.properties },
      { additionalProperties: false },
    ),
    since: "0.1.0",
  },
  "optimisation/degraded": {
    summary: "A part of the optimisation does less than it should, and why. Told once for each reason.",
    params: Type.Object(
      { sessionId: SessionId, seq: Seq, at: Timestamp, ...Degraded.properties },
      { additionalProperties: false },
    ),
    since: "0.1.0",
  },
  "pruning/changed": {
    summary: "Blocks, or outputs, have left the context or have come back. Only with pruning.",
    params: Type.Object(
      { sessionId: SessionId, seq: Seq, at: Timestamp, ...PruningChanged.properties },
      { additionalProperties: false },
    ),
    since: "0.1.0",
  },
  "pruning/nudged": {
    summary: "The model was reminded to compress. Only with pruning.",
    params: Type.Object(
      { sessionId: SessionId, seq: Seq, at: Timestamp, ...PruningNudged.properties },
      { additionalProperties: false },
    ),
    since: "0.1.0",
  },
  "pruning/degraded": {
    summary:
      "Pruning does less than it should, and why. Told once for each reason, until it does what it should again.",
    params: Type.Object(
      { sessionId: SessionId, seq: Seq, at: Timestamp, ...PruningDegraded.properties },
      { additionalProperties: false },
    ),
    since: "0.1.0",
  },
} as const satisfies Readonly<Record<string, NotificationRow>>;

export type NotificationName = keyof typeof notifications;
export type NotificationParams<N extends NotificationName> = Static<(typeof notifications)[N]["params"]>;
