import type { MethodName, Params, Result } from "../../protocol/methods.ts";

/** The peer behind a call, as far as handlers need it: somewhere to send notifications to while it lives. */
export interface Peer {
  /** Unique in the daemon's life; for logs and attribution. */
  readonly id: string;
  /** Aborted when the peer has gone. */
  readonly gone: AbortSignal;
  /**
   * Queues one frame: UTF-8 JSON, a whole JSON-RPC notification. The buffer is shared between peers and is never
   * changed. Never blocks and never throws; a peer that is gone or over its budget loses the frame (and is closed).
   */
  send(frame: Buffer): void;
}

/** What a handler knows of its call besides the params. */
export interface Call {
  /** Absent where nothing can be sent later (HTTP). */
  readonly peer?: Peer;
  /** Aborted when nobody waits for the answer any more: the peer has gone, or cancelled the call. */
  readonly signal: AbortSignal;
}

export type Handler<M extends MethodName> = (params: Params<M>, call: Call) => Promise<Result<M>> | Result<M>;

/** One handler for each row of the method table. */
export type Handlers = { readonly [M in MethodName]: Handler<M> };

/** The handlers of some rows of the table. */
export type HandlersOf<Rows extends object> = { readonly [M in keyof Rows & MethodName]: Handler<M> };
