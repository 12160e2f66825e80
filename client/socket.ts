/** How a socket ended. */
export interface SocketEnd {
  /** WebSocket close code (RFC 6455, 7.4). 1006: there was no close frame. */
  readonly code: number;
  readonly reason: string;
  readonly error?: Error;
}

/** The listener of a socket. `onEnd` is called last and once, and only if the socket had opened. */
export interface SocketListener {
  onText(text: string): void;
  onBinary(byteLength: number): void;
  onEnd(end: SocketEnd): void;
}

/** One open socket that carries text frames. The two implementations are `node-socket.ts` and `browser-socket.ts`. */
export interface Socket {
  /** Never throws: a closed socket drops the text, and `onEnd` reports the end. */
  send(text: string): void;
  /** Starts the closing handshake. `onEnd` follows within {@link closeTimeoutMs}, whatever the peer does. */
  close(code: number, reason: string): void;
}

/**
 * Opens a socket. The listener is a parameter so that a frame directly after the handshake is not missed.
 * Rejects if the socket does not open; the listener is not called then.
 */
export type OpenSocket = (listener: SocketListener) => Promise<Socket>;

/** How long a peer may take to answer a close frame. */
export const closeTimeoutMs = 2_000;
