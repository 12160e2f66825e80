import type { Client, SessionHandle } from "../../client/browser.ts";

/** What the state uses of the client library, so that tests can pass a daemon of their own. */
export interface Daemon
  extends Pick<
    Client,
    "id" | "call" | "onConnection" | "onSessionChanged" | "onDeliveryUpdated" | "onDialogChanged" | "setAnswersDialogs"
  > {
  session(sessionId: string): Pick<SessionHandle, "listen">;
}

/** One reader of a session's notifications. */
export type FeedListener = Parameters<SessionHandle["listen"]>[0];
export type SessionNotification = Parameters<FeedListener["receive"]>[0];
export type FeedGap = Parameters<FeedListener["gap"]>[0];
