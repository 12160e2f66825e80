/** How a socket ended. */
export interface SocketEnd {
  /** WebSocket close code (RFC 6455, 7.4). 1006: there was no close frame. */
  readonly code: number;
  readonly reason: string;
  readonly error?: Error;
}

/** Where a socket reports to. `onEnd` is called once, and only if the socket had opened; nothing follows it. */
export interface SocketListener {
  onText(text: string): void;
  onBinary(byteLength: number): void;
  onEnd(end: SocketEnd): void;
}

/** One open socket that carries text frames. The two implementations are `node-socket.ts` and `browser-socket.ts`. */
export interface Socket {
  /** Never throws: what a dead socket is given is lost, and `onEnd` tells. */
  send(text: string): void;
  /** Starts the closing handshake. `onEnd` follows within {@link closeTimeoutMs}, whatever the peer does. */
  close(code: number, reason: string): void;
}

/**
 * Opens a socket. The listener comes first, so that a frame right behind the handshake is not missed.
 * Rejects when the socket does not open; the listener then hears nothing.
 */
export type OpenSocket = (listener: SocketListener) => Promise<Socket>;

/** How long a peer may take to answer a close frame. */
export const closeTimeoutMs = 2_000;
