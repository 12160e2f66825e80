import type { DaemonInfo } from "../protocol/daemon.ts";
import type { MethodName, Params, Result } from "../protocol/methods.ts";
import type { SessionInfo } from "../protocol/session.ts";
import { PROTOCOL_VERSION } from "../protocol/wire.ts";
import type { ConnectionEnd } from "./channel.ts";
import { type CallOptions, DaemonPeer, type PeerOptions } from "./daemon-peer.ts";
import { ProtocolMismatchError } from "./local-errors.ts";
import { SessionHandle } from "./session-handle.ts";
import type { OpenSocket } from "./socket.ts";

/** A connection to the daemon. It keeps a process alive until it is closed. */
export class Client {
  readonly #peer: DaemonPeer;

  private constructor(peer: DaemonPeer) {
    this.#peer = peer;
  }

  /** Use `connect()` or, in a browser, `connectTo()`. */
  static async open(openSocket: OpenSocket, options: PeerOptions = {}): Promise<Client> {
    return new Client(await DaemonPeer.open(openSocket, options));
  }

  /** Resolves, and never rejects, with how the connection ended. */
  get closed(): Promise<ConnectionEnd> {
    return this.#peer.closed;
  }

  /**
   * Calls a method of the protocol. Rejects with the daemon's `WireError` (`kind` is its name, `data` its details),
   * `ConnectionClosedError`, `InvalidParamsError`, or the reason of `signal`.
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

  /** A session that exists. Makes no call: an id that is unknown shows at the first one. */
  session(sessionId: string): SessionHandle {
    return new SessionHandle(this.#peer, sessionId);
  }

  /** The sessions that are not closed, the newest first. */
  async listSessions(params: Params<"session/list"> = {}, options: CallOptions = {}): Promise<readonly SessionInfo[]> {
    return (await this.call("session/list", params, options)).sessions;
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

/** Asks the daemon for its protocol version; closes the client and throws if it is another. */
export async function requireProtocol(client: Client, options: CallOptions = {}): Promise<void> {
  try {
    const { protocol, version } = await client.info(options);
    if (protocol === PROTOCOL_VERSION) return;
    throw new ProtocolMismatchError({ client: PROTOCOL_VERSION, daemon: protocol, daemonVersion: version });
  } catch (error) {
    await client.close();
    throw error;
  }
}
