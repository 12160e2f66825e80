import type { Gap } from "../protocol/event.ts";
import type { MethodName, Params, Result } from "../protocol/methods.ts";
import type { NotificationName, NotificationParams } from "../protocol/notifications.ts";

/** A notification of a session's log, or `tool/formerText`. */
export type SessionNotification = {
  readonly [Name in NotificationName]: { readonly name: Name; readonly params: NotificationParams<Name> };
}[NotificationName];

/** What a follower of a session is told. None of it may throw. */
export interface Follower {
  /** First and once. `present`: pi's earlier events that still hold. */
  begin(start: { readonly cursor: number; readonly present?: readonly Readonly<Record<string, unknown>>[] }): void;
  /** Each notification once, in the order of the log. */
  receive(notification: SessionNotification): void;
  gap(gap: Pick<Gap, "from" | "to" | "onlyDeltas"> & { readonly reason: string }): void;
  /** Last and once: the session was closed, or cannot be followed. */
  end(reason: { readonly kind: "session_closed" } | { readonly kind: "failed"; readonly error: unknown }): void;
}

/** The daemon as this translation needs it: the host decides how to reach it. */
export interface Port {
  /** Calls a method of the protocol. Rejects with `WireError`. */
  call<M extends MethodName>(method: M, params: Params<M>, signal?: AbortSignal): Promise<Result<M>>;
  /** Follows a session, from before what is open in its run, until the returned function is called. */
  follow(sessionId: string, follower: Follower): () => void;
}
