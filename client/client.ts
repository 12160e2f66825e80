import type { DaemonInfo } from "../protocol/daemon.ts";
import type { MethodName, Params, Result } from "../protocol/methods.ts";
import type { NotificationParams } from "../protocol/notifications.ts";
import type { SessionInfo } from "../protocol/session.ts";
import type { ConnectionEnd } from "./channel.ts";
import type { ConnectionEvent } from "./connection.ts";
import { DaemonEvents, type DaemonEventsOptions } from "./daemon-events.ts";
import { type CallOptions, DaemonPeer, type PeerOptions } from "./daemon-peer.ts";
import { SessionHandle } from "./session-handle.ts";

/**
 * A program's connection to the daemon. After a lost connection the client reconnects (`reconnect` configures this), and
 * until then:
 *
 * - new calls wait for the connection, within limits, and honour their signals;
 * - calls that only read, pushes and waits are repeated, also at a restarted daemon. So are prompts and `createSession`,
 *   which get an `idempotencyKey` from this library if they have none: the daemon stores the key before it acts. A prompt
 *   that was lost with its daemon rejects with `prompt_lost`, and is not sent again;
 * - other calls whose answer was lost reject with `ConnectionClosedError`: they may have taken effect;
 * - event streams continue where they were, and report what cannot be replayed.
 *
 * It keeps the process alive until it is closed.
 */
export class Client {
  readonly #peer: DaemonPeer;

  private constructor(peer: DaemonPeer) {
    this.#peer = peer;
  }

  /** Use `connect()` or, in a browser, `connectTo()`. */
  static async open(options: PeerOptions, signal?: AbortSignal): Promise<Client> {
    return new Client(await DaemonPeer.open(options, signal));
  }

  /** The client's id at the daemon, over all its connections: the `by.clientId` of the effects of its calls. */
  get id(): string {
    return this.#peer.clientId;
  }

  /**
   * Resolves when the client has ended, by `close()` or because reconnecting failed, with how it ended. Never rejects.
   * `error` is the error that rejected the pending calls.
   */
  get closed(): Promise<ConnectionEnd> {
    return this.#peer.closed;
  }

  /**
   * Calls `listener` when the connection is lost, open again, or permanently closed, until the returned function is called.
   * The client handles an event before the listener gets it: waiting calls have been sent at `connected`.
   */
  onConnection(listener: (event: ConnectionEvent) => void): () => void {
    return this.#peer.onConnection(listener);
  }

  /**
   * Calls a method of the protocol. Rejects with the daemon's `WireError` (`kind` is its name, `data` its details),
   * `InvalidParamsError`, `UnknownMethodError`, `ConnectionClosedError`, `WaitingOverflowError`, the reason of `signal`, or the
   * error that ended the client (`ReconnectFailedError`, `UnauthorizedError`, `ProtocolMismatchError`).
   */
  call<M extends MethodName>(method: M, params: Params<M>, options: CallOptions = {}): Promise<Result<M>> {
    return this.#peer.call(method, params, options);
  }

  /** Returns the daemon's version, limits and capabilities. */
  info(options: CallOptions = {}): Promise<DaemonInfo> {
    return this.call("daemon/info", {}, options);
  }

  /** Creates a session and starts its pi; resolves when pi is ready. */
  async createSession(params: Params<"session/create">, options: CallOptions = {}): Promise<SessionHandle> {
    const info = await this.call("session/create", params, options);
    return new SessionHandle(this.#peer, info.sessionId, info);
  }

  /** Adopts an existing pi session, by its id or its file; resolves when its pi is ready. */
  async openSession(params: Params<"session/open">, options: CallOptions = {}): Promise<SessionHandle> {
    const info = await this.call("session/open", params, options);
    return new SessionHandle(this.#peer, info.sessionId, info);
  }

  /** Returns a handle of an existing session, without a call: the first call rejects if the id is unknown. */
  session(sessionId: string): SessionHandle {
    return new SessionHandle(this.#peer, sessionId);
  }

  /** Returns the sessions that are not closed, newest first. */
  async listSessions(params: Params<"session/list"> = {}, options: CallOptions = {}): Promise<readonly SessionInfo[]> {
    return (await this.call("session/list", params, options)).sessions;
  }

  /** Returns the models for which pi has credentials, and its logins. Needs no session. */
  listModels(params: Params<"model/list"> = {}, options: CallOptions = {}): Promise<Result<"model/list">> {
    return this.call("model/list", params, options);
  }

  /**
   * Calls `listener` for each session that is created, changes or is closed, until the returned function is called. For a
   * list that stays current, call {@link listSessions} after this call resolves and after each `connected` of
   * {@link onConnection}: the listener gets every later change.
   */
  async onSessionChanged(
    listener: (changed: NotificationParams<"daemon/sessionChanged">) => void,
    options: CallOptions = {},
  ): Promise<() => void> {
    return await this.#peer.watch.add("daemon/sessionChanged", listener, options);
  }

  /** Like {@link onSessionChanged}, for each change of a delivery of any session. */
  onDeliveryUpdated(
    listener: (updated: NotificationParams<"daemon/deliveryUpdated">) => void,
    options: CallOptions = {},
  ): Promise<() => void> {
    return this.#peer.watch.add("daemon/deliveryUpdated", listener, options);
  }

  /**
   * Like {@link onSessionChanged}, for the dialogs of all sessions: opened, opened to other clients, ended. `dialog/list`
   * returns the open ones. It does not say that this client answers them: {@link setAnswersDialogs} does.
   */
  onDialogChanged(
    listener: (changed: NotificationParams<"daemon/dialogChanged">) => void,
    options: CallOptions = {},
  ): Promise<() => void> {
    return this.#peer.watch.add("daemon/dialogChanged", listener, options);
  }

  /**
   * Tells the daemon whether this client can answer the dialogs of all sessions; also after a lost connection, until it is
   * told otherwise. While a client can, dialogs wait for their answers: `dialog/respond`. Rejects with `forbidden` if the
   * token lacks `prompt`.
   */
  setAnswersDialogs(answers: boolean, options: CallOptions = {}): Promise<void> {
    return this.#peer.watch.setAnswers(answers, options);
  }

  /**
   * Returns the daemon's feed, the events of all sessions: sessions created, changed and closed, runs ended, deliveries
   * settled, dialogs opened and resolved. Without `after` it starts now. It continues over lost connections and restarts
   * of the daemon, with each event once and in order, or reports the gap.
   */
  daemonEvents(options: DaemonEventsOptions = {}): DaemonEvents {
    return new DaemonEvents(this.#peer, options);
  }

  /** Returns a page of deliveries, newest first, and the cursor of the next page. */
  listDeliveries(params: Params<"delivery/list"> = {}, options: CallOptions = {}): Promise<Result<"delivery/list">> {
    return this.call("delivery/list", params, options);
  }

  /**
   * Ends the connection; sessions continue. Pending calls and waits reject with `ConnectionClosedError`, event streams end.
   * Resolves, at most 2 seconds later, when the socket is closed. Idempotent: every call returns the same promise.
   */
  close(): Promise<ConnectionEnd> {
    return this.#peer.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}
