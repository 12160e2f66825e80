import type { Socket } from "node:net";

export interface TokenlessSocketsOptions {
  readonly max: number;
  /** The bound for the sockets of one address. Default: none. */
  readonly maxPerAddress?: number | undefined;
  readonly timeoutMs: number;
  /** Takes a socket that has sent no token in time. */
  readonly onTimeout: (socket: Socket) => void;
  /** Called before a socket is closed for a newer one. */
  readonly onReplaced: (socket: Socket) => void;
}

interface Tokenless {
  /** Before the TLS handshake, the plain socket. */
  socket: Socket;
  readonly timer: NodeJS.Timeout;
  /** The turn of the event loop in which it was accepted, as {@link TokenlessSockets} counts. */
  readonly turn: number;
}

/**
 * The sockets that have not sent a token. They have a deadline and a small number of places, where a new one replaces the
 * oldest, so that they cannot keep out clients that have a token: a quota would refuse the newest, which may have one.
 */
export class TokenlessSockets {
  readonly #options: TokenlessSocketsOptions;
  readonly #maxPerAddress: number;
  /** By peer, the oldest first. */
  readonly #sockets = new Map<string, Tokenless>();
  /** Counts turns of the event loop while there are too many sockets. */
  #turn = 0;
  #isEnforcing = false;

  constructor(options: TokenlessSocketsOptions) {
    this.#options = options;
    this.#maxPerAddress = options.maxPerAddress ?? Number.POSITIVE_INFINITY;
  }

  /** Adds an accepted socket. */
  add(socket: Socket): void {
    const peer = peerOf(socket);
    const timer = setTimeout(() => this.#timeOut(peer), this.#options.timeoutMs).unref();
    const added: Tokenless = { socket, timer, turn: this.#turn };
    this.#sockets.set(peer, added);
    socket.once("close", () => {
      clearTimeout(timer);
      if (this.#sockets.get(peer) === added) this.#sockets.delete(peer);
    });
    if (this.#isEnforcing || this.#sockets.size <= Math.min(this.#options.max, this.#maxPerAddress)) return;
    this.#isEnforcing = true;
    setImmediate(() => this.#enforce());
  }

  /** Replaces the plain socket of a peer by its TLS socket. */
  secured(socket: Socket): void {
    const known = this.#sockets.get(peerOf(socket));
    if (known !== undefined) known.socket = socket;
  }

  /** Removes a socket, which has sent a token. */
  remove(socket: Socket): void {
    const peer = peerOf(socket);
    clearTimeout(this.#sockets.get(peer)?.timer);
    this.#sockets.delete(peer);
  }

  /**
   * Closes the oldest sockets above the bounds. A request that arrives with the connection is read one turn of the event
   * loop after the accept, so each socket is kept for that turn.
   */
  #enforce(): void {
    this.#turn += 1;
    const ofAddress = new Map<string | undefined, number>();
    for (const { socket } of this.#sockets.values())
      ofAddress.set(socket.remoteAddress, (ofAddress.get(socket.remoteAddress) ?? 0) + 1);
    let waits = false;
    for (const [peer, { socket, turn }] of this.#sockets) {
      const { remoteAddress } = socket;
      const same = ofAddress.get(remoteAddress) ?? 0;
      if (this.#sockets.size <= this.#options.max && same <= this.#maxPerAddress) continue;
      if (turn > this.#turn - 2) {
        waits = true;
        break;
      }
      ofAddress.set(remoteAddress, same - 1);
      this.#options.onReplaced(socket);
      this.#sockets.delete(peer);
      socket.destroy();
    }
    this.#isEnforcing = waits;
    if (waits) setImmediate(() => this.#enforce());
  }

  #timeOut(peer: string): void {
    const socket = this.#sockets.get(peer)?.socket;
    this.#sockets.delete(peer);
    if (socket !== undefined) this.#options.onTimeout(socket);
  }
}

/** Returns a name that is unique among open sockets: one port of a peer may have a socket to each local address. */
export function peerOf({ remoteAddress, remotePort, localAddress }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localAddress}`;
}
