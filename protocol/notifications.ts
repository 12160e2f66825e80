import type { Static, TSchema } from "typebox";
import { By } from "./client-identity.ts";
import { ContextError } from "./context-option.ts";
import { Control, ControlChange } from "./control.ts";
import { ForeignWrite, ForeignWriteAction } from "./custody.ts";
import { Delivery } from "./delivery.ts";
import { Dialog, DialogEnd, DialogId, DialogResolution, DialogUnsupported, DialogUpdate } from "./dialog.ts";
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
 * Notifications about the sessions to which a connection is subscribed. All except those of `provider/` share one
 * `seq` per session; `provider/` notifications are sent only on request, so that others see no holes.
 */
export const notifications = {
  "daemon/sessionChanged": {
    summary:
      "A session was created, changed or closed: keeps lists of sessions current, after `daemon/subscribe`. It has no `seq`. Changes in quick succession are one notification, with the session's newest state.",
    params: Type.Object(
      {
        sessionId: SessionId,
        change: Type.Enum(["created", "changed", "closed"]),
        session: Type.Optional({ ...SessionInfo, description: "Absent if the session was closed." }),
      },
      { additionalProperties: false },
    ),
    since: "0.1.0",
  },
  "daemon/deliveryUpdated": {
    summary:
      "A delivery of any session changed its state, after `daemon/subscribe` with `deliveries`. It has no `seq`; subscribers of the session get `delivery/updated`, too.",
    params: Type.Object(
      { sessionId: SessionId, by: Type.Optional(By), delivery: Delivery },
      { additionalProperties: false },
    ),
    since: "0.1.0",
  },
  "daemon/dialogChanged": {
    summary:
      "A dialog of any session was opened, opened to other clients, or has ended, after `daemon/subscribe` with `dialogs`. It has no `seq`; subscribers of the session get the notifications of the dialog, too.",
    params: Type.Object(
      {
        sessionId: SessionId,
        change: Type.Enum(["opened", "updated", "resolved"]),
        dialogId: DialogId,
        dialog: Type.Optional({ ...Dialog, description: "With `opened`." }),
        openToOthersAt: Type.Optional({
          ...DialogUpdate.openToOthersAt,
          description: "With `updated`: when all clients may answer, which is now.",
        }),
        resolution: Type.Optional({ ...DialogResolution, description: "With `resolved`: how it ended." }),
      },
      { additionalProperties: false },
    ),
    since: "0.1.0",
  },
  "daemon/event": {
    summary:
      "An event in any session, in storage order, after `daemon/subscribe` with `after`. It is a reference: read the details by its ids.",
    params: DaemonEvent,
    since: "0.1.0",
  },
  "daemon/gap": {
    summary: "Numbers of the daemon's feed that cannot be replayed, at their position in the order.",
    params: FeedGap,
    since: "0.1.0",
  },
  "session/event": {
    summary: "An event that pi reported, in pi's order.",
    params: Envelope,
    since: "0.1.0",
  },
  "session/gap": {
    summary: "Numbers of the session's log that are not sent to this connection, at their position in the order.",
    params: Type.Object({ sessionId: SessionId, ...Gap.properties }, { additionalProperties: false }),
    since: "0.1.0",
  },
  "session/stderr": {
    summary:
      "What the session's pi wrote to its stderr, for subscriptions with `stderr`: warnings of pi, output of extensions. It has no `seq`, is not kept, and comes up to a second later. pi's stderr can contain anything, also secrets.",
    params: Type.Object(
      {
        sessionId: SessionId,
        text: Type.String({ description: "As pi wrote it, not only whole lines." }),
        omittedBytes: Type.Optional(
          Type.Integer({
            minimum: 1,
            description:
              "How many bytes are missing before it, at least: of more than 64 KiB in a second only the newest are sent.",
          }),
        ),
      },
      { additionalProperties: false },
    ),
    since: "0.1.0",
  },
  "session/formerText": {
    summary:
      "What a file has before the tool `write` replaces it, for subscriptions with `formerText`. It has no `seq`, is not kept, and comes before that tool's `tool_execution_end`. None comes where the text is unknown: for more than 1 MiB, what is not text in UTF-8, a directory, a device, a file that cannot be read or that another call of the same message changes first, and after a lost connection.",
    params: Type.Object(
      {
        sessionId: SessionId,
        toolCallId: Type.String(),
        path: Type.String({ description: "The file's absolute path, as pi resolves it." }),
        text: Type.Union([Type.String(), Type.Null()], { description: "null: the file does not exist." }),
      },
      { additionalProperties: false },
    ),
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
          Type.Array(LostPrompt, { description: "Prompts that pi had accepted and lost when it ended." }),
        ),
        restored: Type.Optional(
          Type.Literal(true, {
            description:
              "An ephemeral session has a new pi, which has only the session's context: later messages are lost.",
          }),
        ),
      },
      { additionalProperties: false },
    ),
    since: "0.1.0",
  },
  "session/replaced": {
    summary:
      "Another session took over this session's pi: by a fork or clone, or because an extension replaced the session.",
    params: Type.Object(
      {
        sessionId: SessionId,
        seq: Seq,
        at: Timestamp,
        from: { ...SessionId, description: "This session. It continues as a hibernated one." },
        to: { ...SessionId, description: "The session that now has the pi." },
        cause: Type.Enum(["call", "extension"], { description: "Whether a client's call or an extension did it." }),
      },
      { additionalProperties: false },
    ),
    since: "0.1.0",
  },
  "session/navigated": {
    summary: "The session continues from another entry of its tree, because a client or an extension moved there.",
    params: Type.Object(
      { sessionId: SessionId, seq: Seq, at: Timestamp, by: Type.Optional(By), ...SessionNavigated.properties },
      { additionalProperties: false },
    ),
    since: "0.1.0",
  },
  "session/labelled": {
    summary: "A client or an extension set or removed the label of an entry.",
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
        to: Type.Optional({ ...SessionId, description: "With `forked`: the session that continues its branch." }),
      },
      { additionalProperties: false },
    ),
    since: "0.1.0",
  },
  "session/controlChanged": {
    summary: "The controller or the control policy of the session changed.",
    params: Type.Object(
      { sessionId: SessionId, seq: Seq, at: Timestamp, by: Type.Optional(By), control: Control, change: ControlChange },
      { additionalProperties: false },
    ),
    since: "0.1.0",
  },
  "prompt/updated": {
    summary: "A prompt of the session changed its state.",
    params: PromptUpdated,
    since: "0.1.0",
  },
  "run/started": {
    summary: "A run has begun.",
    params: RunStarted,
    since: "0.1.0",
  },
  "run/ended": {
    summary: "A run has ended. Each run ends exactly once, even if pi or the daemon ends.",
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
      "A request is sent to the model's provider. Exactly one of `provider/requestDelivered` and `provider/requestFailed` follows with the same requestId.",
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
    summary: "An extension opened a dialog. All subscribers receive it; `dialog/respond` answers it.",
    params: Type.Object(
      { sessionId: SessionId, seq: Seq, at: Timestamp, dialog: Dialog },
      { additionalProperties: false },
    ),
    since: "0.1.0",
  },
  "dialog/updated": {
    summary: "A dialog's owner left before `openToOthersAt`: all clients may answer it now.",
    params: Type.Object(
      { sessionId: SessionId, seq: Seq, at: Timestamp, ...DialogUpdate },
      { additionalProperties: false },
    ),
    since: "0.1.0",
  },
  "dialog/resolved": {
    summary: "A dialog has ended. A dialog that was never open has no preceding `dialog/opened`.",
    params: Type.Object(
      { sessionId: SessionId, seq: Seq, at: Timestamp, ...DialogEnd },
      { additionalProperties: false },
    ),
    since: "0.1.0",
  },
  "dialog/unsupported": {
    summary:
      "An extension called `ctx.ui.custom()`, which needs a terminal: it got `undefined`, or an error if `customUi` is `throw`.",
    params: Type.Object(
      { sessionId: SessionId, seq: Seq, at: Timestamp, ...DialogUnsupported.properties },
      { additionalProperties: false },
    ),
    since: "0.1.0",
  },
  "pending/updated": {
    summary: "All background work of extensions inside pi, at each change. For display only.",
    params: Type.Object(
      { sessionId: SessionId, seq: Seq, at: Timestamp, pending: Type.Array(PendingItem, { maxItems: 100 }) },
      { additionalProperties: false },
    ),
    since: "0.1.0",
  },
  "context/failed": {
    summary: "A session started without its requested context, because `context.onError` is `warn`.",
    params: Type.Object(
      { sessionId: SessionId, seq: Seq, at: Timestamp, error: ContextError },
      { additionalProperties: false },
    ),
    since: "0.1.0",
  },
  "cache/broken": {
    summary: "A request could not use the provider's cache of the previous request. Only with the part `cache`.",
    params: Type.Object(
      { sessionId: SessionId, seq: Seq, at: Timestamp, ...CacheBroken.properties },
      { additionalProperties: false },
    ),
    since: "0.1.0",
  },
  "cost/checkpointed": {
    summary: "Costs since the last checkpoint. Only with the part `cost`.",
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
    summary: "A part of the optimisation is degraded, and why. Sent once for each reason.",
    params: Type.Object(
      { sessionId: SessionId, seq: Seq, at: Timestamp, ...Degraded.properties },
      { additionalProperties: false },
    ),
    since: "0.1.0",
  },
  "pruning/changed": {
    summary: "Blocks or outputs were removed from the context or restored. Only with pruning.",
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
    summary: "Pruning is degraded, and why. Sent once for each reason until it recovers.",
    params: Type.Object(
      { sessionId: SessionId, seq: Seq, at: Timestamp, ...PruningDegraded.properties },
      { additionalProperties: false },
    ),
    since: "0.1.0",
  },
} as const satisfies Readonly<Record<string, NotificationRow>>;

export type NotificationName = keyof typeof notifications;
export type NotificationParams<N extends NotificationName> = Static<(typeof notifications)[N]["params"]>;
