import { once } from "node:events";
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** A place where code inside pi waits until the test opens it. */
export interface Barrier {
  /** A GET of this URL is answered when the barrier is opened. */
  readonly url: string;
  /** A bash command that waits at the barrier. */
  readonly command: string;
  /** Resolves when a request waits at it. */
  readonly reached: Promise<void>;
  open(): void;
}

/** The barriers of a test file, on an HTTP server of their own on loopback. */
export class Barriers implements AsyncDisposable {
  readonly #server: Server;
  readonly #barriers = new Map<string, { reach: () => void; waiting: ServerResponse[]; isOpen: boolean }>();
  #count = 0;

  private constructor(server: Server) {
    this.#server = server;
    server.on("request", ({ url = "" }, response) => {
      const barrier = this.#barriers.get(url);
      if (barrier === undefined || barrier.isOpen) response.end("open\n");
      else barrier.waiting.push(response);
      barrier?.reach();
    });
  }

  static async open(): Promise<Barriers> {
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    return new Barriers(server);
  }

  make(): Barrier {
    this.#count += 1;
    const path = `/barrier-${this.#count}`;
    const { port } = this.#server.address() as AddressInfo;
    const reached = Promise.withResolvers<void>();
    const barrier = { reach: reached.resolve, waiting: [] as ServerResponse[], isOpen: false };
    this.#barriers.set(path, barrier);
    return {
      url: `http://127.0.0.1:${port}${path}`,
      command: `exec 3<>/dev/tcp/127.0.0.1/${port}; printf 'GET ${path} HTTP/1.0\\r\\n\\r\\n' >&3; cat <&3`,
      reached: reached.promise,
      open: () => {
        barrier.isOpen = true;
        for (const response of barrier.waiting.splice(0)) response.end("open\n");
      },
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }
}
