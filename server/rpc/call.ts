import type { By } from "../../protocol/client-identity.ts";
import type { MethodName, Params, Result } from "../../protocol/methods.ts";
import type { Frame } from "../frames/frame.ts";
import type { Grant } from "./grant.ts";

/** The peer behind a call, as far as handlers need it: somewhere to send notifications to while it lives. */
export interface Peer {
  /** Unique in the daemon's life; for logs and attribution. */
  readonly id: string;
  /** Aborted when the peer has gone. */
  readonly gone: AbortSignal;
  /**
   * Queues one frame, which is shared between peers. Never blocks and never throws; a peer that is gone or over its
   * budget loses the frame (and is closed).
   */
  send(frame: Frame): void;
  /**
   * Resolves when what was sent has left so far that more can be sent at once, or when the peer has gone. Whoever sends
   * much that lies ready (a replay) waits for it. Absent: there is no need to wait.
   */
  drained?(): Promise<void> | undefined;
  /** Does work for it, such as to read a long log, when it is its token's turn. Absent: there are no turns. */
  inTurn?<T>(work: () => T): T | Promise<Awaited<T>>;
}

/** What a call's effect is known by. Where there is something under this id already, the call was made before. */
export interface Subject {
  readonly id: string;
  /** Resolves when the key is on disk; nothing may take effect before. */
  readonly reserved: Promise<void>;
}

/** What a handler knows of its call besides the params. */
export interface Call {
  /** Absent where nothing can be sent later (HTTP). */
  readonly peer?: Peer;
  /** Who calls. */
  readonly by?: By;
  /** What its token allows. Without one it is refused, where that is looked at. */
  readonly grant?: Grant | undefined;
  /** It came over the Unix socket. */
  readonly isLocal?: boolean;
  /** For a call with an idempotency key: the id that its effect is to have. */
  readonly subject?: Subject;
  /** Aborted when nobody waits for the answer any more: the peer has gone, or cancelled the call. */
  readonly signal: AbortSignal;
  /** Calls this when the answer has been given to the peer: what it sends then comes behind the answer. */
  readonly whenAnswered?: ((then: () => void) => void) | undefined;
}

export type Handler<M extends MethodName> = (params: Params<M>, call: Call) => Promise<Result<M>> | Result<M>;

/** One handler for each row of the method table. */
export type Handlers = { readonly [M in MethodName]: Handler<M> };

/** The handlers of some rows of the table. */
export type HandlersOf<Rows extends object> = { readonly [M in keyof Rows & MethodName]: Handler<M> };
