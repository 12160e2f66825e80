/** pi-rpcd's client for Node: finds the running daemon and connects to it. `browser.ts` is the entry for browsers. */

export type { By } from "../protocol/client-identity.ts";
export type { Control, ControlPolicy } from "../protocol/control.ts";
export type { DaemonInfo } from "../protocol/daemon.ts";
export type { DaemonFile } from "../protocol/daemon-file.ts";
export type { Attempt, Delivery, DeliveryState, Evidence, Reason, WaitUntil } from "../protocol/delivery.ts";
export type { Dialog, DialogAnswer, DialogMethod, DialogPolicy, DialogResolution } from "../protocol/dialog.ts";
export { type ErrorData, type ErrorName, WireError } from "../protocol/errors.ts";
export type { Gap } from "../protocol/event.ts";
export type { DaemonEvent, FeedPlace } from "../protocol/feed.ts";
export type { MethodName, Params, Result } from "../protocol/methods.ts";
export type { Prompt, PromptResult, PromptState, RunOutcome } from "../protocol/prompt.ts";
export type { SessionInfo } from "../protocol/session.ts";
export type { ConnectionEnd } from "./channel.ts";
export type { Client } from "./client.ts";
export { type ConnectOptions, connect } from "./connect.ts";
export type { ConnectionEvent } from "./connection.ts";
export type { DaemonEvents, DaemonEventsOptions } from "./daemon-events.ts";
export type { DaemonFeedGap } from "./daemon-feed.ts";
export type { CallOptions } from "./daemon-peer.ts";
export type { DeliveryHandle } from "./delivery.ts";
export type { DeliveryChanges, DeliveryChangesOptions } from "./delivery-changes.ts";
export type { DeliveryUpdates } from "./delivery-updates.ts";
export type { Diagnostic, OnDiagnostic } from "./diagnostic.ts";
export type { DialogCall, DialogHandler, DialogResponder, DialogResponderOptions } from "./dialogs.ts";
export { readDaemonFile, stateDirectory } from "./discovery.ts";
export type { EventStream, EventsOptions } from "./event-stream.ts";
export { type HttpCallOptions, httpCall } from "./http-client.ts";
export * from "./local-errors.ts";
export type { LogNotification, NotificationStream, NotificationsOptions } from "./notification-stream.ts";
export * from "./pi-events.ts";
export type { ProviderEvent, ProviderEvents, ProviderEventsOptions } from "./provider-events.ts";
export type { ReachOptions } from "./reach.ts";
export type { ReconnectOptions } from "./reconnect-policy.ts";
export type { FeedStart } from "./session-feed.ts";
export type {
  AbortOptions,
  CommandOptions,
  ControlOptions,
  EntryPieceOptions,
  MessageOptions,
  PiCommand,
  PromptOptions,
  PushParams,
  SessionHandle,
  SteerOptions,
  TranscriptOptions,
} from "./session-handle.ts";
export type { PromptCall } from "./settled-run.ts";
