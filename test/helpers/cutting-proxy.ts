import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

/** Where a connection is cut: at the nth chunk that a side sends from now on. */
export interface Cut {
  readonly from: "client" | "daemon";
  /** From 1. */
  readonly nth: number;
  /** How much of that chunk is still forwarded, from 0 to 1. */
  readonly share: number;
}

/** Flaws of a link, in both directions. */
export interface Weather {
  /** Bytes are forwarded in pieces of this size. */
  readonly pieceBytes?: number;
  /** The delay of each piece, in milliseconds. */
  readonly latencyMs?: number;
}

/** A Unix socket or a port of loopback in front of a daemon's that resets connections and degrades the link on request. */
export class CuttingProxy implements AsyncDisposable {
  readonly socketPath: string;
  /** Where it listens, if `socketPath` is 0. */
  readonly port: number;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #weather: Weather | undefined;
  #isSilent = false;
  #cut: { readonly from: Cut["from"]; left: number; readonly share: number } | undefined;

  private constructor(server: Server, socketPath: string, target: string | number) {
    this.socketPath = socketPath;
    this.port = (server.address() as Partial<AddressInfo>).port ?? 0;
    this.#server = server;
    server.on("connection", (client) => {
      this.#join(client, typeof target === "string" ? connect(target) : connect(target, "127.0.0.1"));
    });
  }

  /** `socketPath` 0: any free port. A number as target is a port. */
  static async start(socketPath: string | 0, target: string | number): Promise<CuttingProxy> {
    const server = createServer();
    if (socketPath === 0) server.listen(0, "127.0.0.1");
    else server.listen(socketPath);
    await once(server, "listening");
    return new CuttingProxy(server, `${socketPath}`, target);
  }

  /** Whether the last requested cut has happened. */
  get hasCut(): boolean {
    return this.#cut === undefined;
  }

  /** Cuts one connection, once. */
  cut({ from, nth, share }: Cut): void {
    this.#cut = { from, left: nth, share };
  }

  /** Applies from now on, also to open connections. Undefined: a good link. */
  set weather(weather: Weather | undefined) {
    this.#weather = weather;
  }

  /** Forwards nothing, not even the end of a connection, until further notice. */
  set isSilent(isSilent: boolean) {
    this.#isSilent = isSilent;
    for (const socket of this.#sockets) {
      if (isSilent) socket.pause();
      else socket.resume();
    }
  }

  /** Resets all open connections. */
  reset(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  /** Resets all connections and refuses further ones. Idempotent. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.reset();
    if (!this.#server.listening) return;
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
          // Data written before the end arrives: the peer sees it, then a broken connection.
          target.end(chunk.subarray(0, Math.floor(chunk.length * share)));
          source.destroy();
        }
      });
    };
    pass("client", client, daemon);
    pass("daemon", daemon, client);
  }

  /** Forwards a chunk under the current flaws; the next chunk waits for it. */
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
