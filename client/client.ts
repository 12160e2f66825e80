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
 * The daemon, as one program uses it. A connection that is lost is made again (`reconnect` says how), and until then:
 *
 * - new calls wait for it, within bounds, and honour their signals;
 * - calls that only read, pushes and waits are made again, also at another daemon process. So are prompts and
 *   `createSession`, which get an `idempotencyKey` from this library if they have none: the daemon has the key on disk
 *   before anything happens. A prompt that was lost with its daemon rejects with `prompt_lost`, and is not sent again;
 * - other calls whose answer was lost reject with `ConnectionClosedError`: they may have taken effect;
 * - event streams go on where they were, and say what cannot be replayed.
 *
 * It keeps a process alive until it is closed.
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

  /** What the daemon knows this client by, over all its connections: `by.clientId` of what follows from its calls. */
  get id(): string {
    return this.#peer.clientId;
  }

  /**
   * Resolves, and never rejects, when it is over for good, with how it ended: by `close()`, or because a lost connection
   * was not made again. `error` is then what pending calls were rejected with.
   */
  get closed(): Promise<ConnectionEnd> {
    return this.#peer.closed;
  }

  /**
   * Tells `listener` when the connection is lost, made again, or over for good, until the function that it gives is
   * called. An event is told when this client has dealt with it: calls that waited have been sent at `connected`.
   */
  onConnection(listener: (event: ConnectionEvent) => void): () => void {
    return this.#peer.onConnection(listener);
  }

  /**
   * Calls a method of the protocol. Rejects with the daemon's `WireError` (`kind` is its name, `data` its details),
   * `InvalidParamsError`, `UnknownMethodError`, `ConnectionClosedError`, `WaitingOverflowError`, the reason of `signal`, or with what ended
   * the client for good (`ReconnectFailedError`, `UnauthorizedError`, `ProtocolMismatchError`).
   */
  call<M extends MethodName>(method: M, params: Params<M>, options: CallOptions = {}): Promise<Result<M>> {
    return this.#peer.call(method, params, options);
  }

  /** What runs at the other end. */
  info(options: CallOptions = {}): Promise<DaemonInfo> {
    return this.call("daemon/info", {}, options);
  }

  /** Creates a session and starts its pi; resolves when pi is ready. */
  async createSession(params: Params<"session/create">, options: CallOptions = {}): Promise<SessionHandle> {
    const info = await this.call("session/create", params, options);
    return new SessionHandle(this.#peer, info.sessionId, info);
  }

  /** Takes an existing pi session, by its id or its file, into the daemon's hands; resolves when its pi is ready. */
  async openSession(params: Params<"session/open">, options: CallOptions = {}): Promise<SessionHandle> {
    const info = await this.call("session/open", params, options);
    return new SessionHandle(this.#peer, info.sessionId, info);
  }

  /** A session that exists. Makes no call: an id that is unknown shows at the first one. */
  session(sessionId: string): SessionHandle {
    return new SessionHandle(this.#peer, sessionId);
  }

  /** The sessions that are not closed, the newest first. */
  async listSessions(params: Params<"session/list"> = {}, options: CallOptions = {}): Promise<readonly SessionInfo[]> {
    return (await this.call("session/list", params, options)).sessions;
  }

  /** The models that pi has credentials for, and its logins; needs no session. */
  listModels(params: Params<"model/list"> = {}, options: CallOptions = {}): Promise<Result<"model/list">> {
    return this.call("model/list", params, options);
  }

  /**
   * Tells `listener` of each session that is created, changes or is closed, until the function that this gives is called.
   * Call {@link listSessions} behind this, and behind each `connected` of {@link onConnection}, for a list that stays
   * current: what happens meanwhile is told.
   */
  async onSessionChanged(
    listener: (changed: NotificationParams<"daemon/sessionChanged">) => void,
    options: CallOptions = {},
  ): Promise<() => void> {
    const { sessionListeners } = this.#peer;
    const own: typeof listener = (changed) => this.#peer.shield(() => listener(changed));
    sessionListeners.add(own);
    const left = this.#peer.onConnection(({ kind }) => {
      if (kind === "connected") this.call("daemon/subscribe", {}).catch(() => {});
    });
    const leave = (): void => {
      left();
      sessionListeners.delete(own);
      if (sessionListeners.size === 0 && !this.#peer.daemonFeed.isFollowed)
        this.call("daemon/unsubscribe", {}).catch(() => {});
    };
    try {
      await this.call("daemon/subscribe", {}, options);
      return leave;
    } catch (error) {
      leave();
      throw error;
    }
  }

  /**
   * What happens in all sessions, as the daemon's feed has it: sessions created, changed and closed, runs ended, deliveries
   * settled, dialogs opened and resolved. Without `after` from now on. It goes on over lost connections and other daemon
   * processes, with each event once and in order, or names the gap.
   */
  daemonEvents(options: DaemonEventsOptions = {}): DaemonEvents {
    return new DaemonEvents(this.#peer, options);
  }

  /** Deliveries, the newest first: a page of them, and where the next one begins. */
  listDeliveries(params: Params<"delivery/list"> = {}, options: CallOptions = {}): Promise<Result<"delivery/list">> {
    return this.call("delivery/list", params, options);
  }

  /**
   * Ends the connection; sessions go on. Pending calls and waits reject with `ConnectionClosedError`, event streams end.
   * Resolves, at most 2 seconds later, when the socket has gone. Idempotent: every call gives the same promise.
   */
  close(): Promise<ConnectionEnd> {
    return this.#peer.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}
