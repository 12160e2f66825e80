import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

/** Where a connection is cut: at the nth chunk that a side sends from now on. */
export interface Cut {
  readonly from: "client" | "daemon";
  /** From 1. */
  readonly nth: number;
  /** How much of that chunk still arrives, from 0 to 1. */
  readonly share: number;
}

/** How a link is worse than a good one, in both directions. */
export interface Weather {
  /** Bytes are passed on in pieces of so many. */
  readonly pieceBytes?: number;
  /** How long each piece takes. */
  readonly latencyMs?: number;
}

/** A Unix socket in front of a daemon's that resets connections where it is told to, and passes on as badly as it is told to. */
export class CuttingProxy implements AsyncDisposable {
  readonly socketPath: string;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #weather: Weather | undefined;
  #isSilent = false;
  #cut: { readonly from: Cut["from"]; left: number; readonly share: number } | undefined;

  private constructor(socketPath: string, target: string) {
    this.socketPath = socketPath;
    this.#server = createServer((client) => this.#join(client, connect(target)));
  }

  static async start(socketPath: string, target: string): Promise<CuttingProxy> {
    const proxy = new CuttingProxy(socketPath, target);
    proxy.#server.listen(socketPath);
    await once(proxy.#server, "listening");
    return proxy;
  }

  /** Whether the cut that was last asked for has been made. */
  get hasCut(): boolean {
    return this.#cut === undefined;
  }

  /** Cuts one connection, once. */
  cut({ from, nth, share }: Cut): void {
    this.#cut = { from, left: nth, share };
  }

  /** From here on, also for connections that there are. Undefined: a good link. */
  set weather(weather: Weather | undefined) {
    this.#weather = weather;
  }

  /** Nothing is passed on, and no end of a connection either, until it is told otherwise. */
  set isSilent(isSilent: boolean) {
    this.#isSilent = isSilent;
    for (const socket of this.#sockets) {
      if (isSilent) socket.pause();
      else socket.resume();
    }
  }

  /** Resets all connections that there are. */
  reset(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.reset();
    this.#server.close();
    await once(this.#server, "close");
  }

  #join(client: Socket, daemon: Socket): void {
    const end = (): void => {
      client.destroy();
      daemon.destroy();
    };
    const pass = (from: Cut["from"], source: Socket, target: Socket): void => {
      this.#sockets.add(source);
      source.on("error", end).on("close", () => {
        this.#sockets.delete(source);
        end();
      });
      source.on("data", (chunk: Buffer) => {
        const share = this.#shareOf(from);
        if (share === undefined && this.#weather !== undefined) void this.#struggle(chunk, source, target);
        else if (share === undefined) target.write(chunk);
        else {
          // What is written before the end arrives: the peer sees it, then a connection that breaks off.
          target.end(chunk.subarray(0, Math.floor(chunk.length * share)));
          source.destroy();
        }
      });
    };
    pass("client", client, daemon);
    pass("daemon", daemon, client);
  }

  /** Passes a chunk on as the weather is; the next one waits for it. */
  async #struggle(chunk: Buffer, source: Socket, target: Socket): Promise<void> {
    source.pause();
    for (let at = 0; at < chunk.length && !target.destroyed; ) {
      const { pieceBytes = chunk.length, latencyMs = 0 } = this.#weather ?? {};
      if (this.#weather !== undefined) await sleep(latencyMs);
      target.write(chunk.subarray(at, at + pieceBytes));
      at += pieceBytes;
    }
    if (!this.#isSilent) source.resume();
  }

  #shareOf(from: Cut["from"]): number | undefined {
    const cut = this.#cut;
    if (cut === undefined || cut.from !== from) return undefined;
    cut.left -= 1;
    if (cut.left > 0) return undefined;
    this.#cut = undefined;
    return cut.share;
  }
}
