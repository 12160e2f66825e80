import type { Socket } from "node:net";
import type { WebSocket } from "ws";

export interface OutboxOptions {
  readonly webSocket: WebSocket;
  /** The socket below, to write many frames at once. */
  readonly socket: Socket;
  readonly maxBufferedBytes: number;
  /** The peer does not read: what waits for it exceeds the bound. Called once. */
  readonly onOverflow: () => void;
}

/**
 * What goes to one connection. All frames of one turn of the event loop leave in one write to the system, which costs
 * far more than a frame. Frames are shared between connections and never copied here.
 */
export class Outbox {
  readonly #options: OutboxOptions;
  readonly #uncork: () => void;
  #corked = false;
  #closed = false;

  constructor(options: OutboxOptions) {
    this.#options = options;
    this.#uncork = () => {
      this.#corked = false;
      options.socket.uncork();
    };
  }

  send(frame: Buffer | string): void {
    if (this.#closed) return;
    const { webSocket, socket, maxBufferedBytes, onOverflow } = this.#options;
    if (webSocket.bufferedAmount > maxBufferedBytes) {
      this.#closed = true;
      onOverflow();
      return;
    }
    if (!this.#corked) {
      this.#corked = true;
      socket.cork();
      setImmediate(this.#uncork);
    }
    webSocket.send(frame, sendOptions);
  }

  /** Whatever comes now is lost. */
  close(): void {
    this.#closed = true;
  }
}

const sendOptions = { binary: false, compress: false, fin: true } as const;
