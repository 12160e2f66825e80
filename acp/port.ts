import type { Gap } from "../protocol/event.ts";
import type { MethodName, Params, Result } from "../protocol/methods.ts";
import type { NotificationName, NotificationParams } from "../protocol/notifications.ts";

/** A notification about a session. */
export type SessionNotification = {
  readonly [Name in NotificationName]: { readonly name: Name; readonly params: NotificationParams<Name> };
}[NotificationName];

/** A place in a session's log. */
export interface Place {
  /** The newest number that a follower has. */
  readonly after: number;
  /** Without it, a number of the log that the session has now. */
  readonly epoch?: string;
}

/** The session was closed, or cannot be followed any more. */
export type FollowingEnd = { readonly kind: "session_closed" } | { readonly kind: string; readonly error: unknown };

/** What a follower of a session is told. None of it may throw. */
export interface Follower {
  /** First and once, with the place before what follows. */
  begin(start: { readonly cursor: number; readonly epoch: string }): void;
  /** After a lost connection: later numbers are of this log. */
  resume?(start: { readonly epoch: string }): void;
  /** Each notification once, in the order of the log. */
  receive(notification: SessionNotification): void;
  /** Numbers that the follower does not get. */
  gap(gap: Pick<Gap, "from" | "to" | "onlyDeltas">): void;
  /** Last and once. */
  end(end: FollowingEnd): void;
}

/** The daemon as the translation needs it. The host decides how to reach it. */
export interface Port {
  /** Whether this client may answer dialogs. */
  readonly answersDialogs: boolean;
  /** Calls a method of the protocol. Rejects with `WireError`. */
  call<M extends MethodName>(method: M, params: Params<M>, signal?: AbortSignal): Promise<Result<M>>;
  /**
   * Follows a session, as one that answers dialogs if it may: from `place` on, otherwise from before the message and the tools that
   * are open in its run. A later call for the same session takes the place of the former. The returned function ends it.
   */
  follow(sessionId: string, follower: Follower, place?: Place): () => void;
}
