import { connect, type Socket } from "node:net";
import { WebSocket } from "ws";
import { daemonError, isErrorObject } from "../../client/daemon-error.ts";
import type { DaemonFile } from "../../protocol/daemon-file.ts";
import type { MethodName, Params, Result } from "../../protocol/methods.ts";
import { WEBSOCKET_PATH } from "../../protocol/wire.ts";

/** The connection has ended before the answer: it is unknown whether the call took effect. */
export class ConnectionLost extends Error {}

export type OnNotification = (peer: Peer, method: string, params: Record<string, unknown>, text: string) => void;

/** One connection to the daemon without our client library, so that frames are seen unprocessed. */
export class Peer {
  readonly name: string;
  /** The life of the daemon that it is connected to. */
  readonly life: number;
  readonly ended: Promise<void>;
  readonly #socket: WebSocket;
  readonly #wire: Socket;
  readonly #onNotification: OnNotification;
  readonly #pending = new Map<number, PromiseWithResolvers<unknown>>();
  #lastId = 0;
  #isOpen = true;

  private constructor(name: string, life: number, wire: Socket, socket: WebSocket, onNotification: OnNotification) {
    this.name = name;
    this.life = life;
    this.#wire = wire;
    this.#socket = socket;
    this.#onNotification = onNotification;
    socket.on("message", (frame: Buffer) => this.#receive(frame.toString("utf8")));
    this.ended = new Promise((resolve) =>
      socket.once("close", (code) => {
        this.#isOpen = false;
        for (const { reject } of this.#pending.values()) reject(new ConnectionLost(`The connection ended (${code}).`));
        this.#pending.clear();
        resolve();
      }),
    );
    socket.on("error", () => {});
  }

  /** Rejects if nothing listens there. */
  static async open(options: {
    readonly name: string;
    readonly life: number;
    readonly daemon: DaemonFile;
    readonly onNotification: OnNotification;
  }): Promise<Peer> {
    const { name, life, daemon, onNotification } = options;
    const wire = connect({ path: daemon.socketPath });
    const socket = new WebSocket(`ws://localhost${WEBSOCKET_PATH}`, {
      perMessageDeflate: false,
      maxPayload: 128 * 1024 * 1024,
      headers: { authorization: `Bearer ${daemon.token}` },
      createConnection: () => wire,
    });
    const peer = new Peer(name, life, wire, socket, onNotification);
    await new Promise<void>((resolve, reject) => {
      socket.once("open", resolve);
      socket.once("error", reject);
    });
    return peer;
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Rejects with the daemon's error, or with {@link ConnectionLost}. */
  async call<M extends MethodName>(method: M, params: Params<M>): Promise<Result<M>> {
    if (!this.#isOpen) throw new ConnectionLost("The connection has ended.");
    this.#lastId += 1;
    const pending = Promise.withResolvers<unknown>();
    this.#pending.set(this.#lastId, pending);
    this.#socket.send(JSON.stringify({ jsonrpc: "2.0", id: this.#lastId, method, params }), () => {});
    return (await pending.promise) as Result<M>;
  }

  /** Sends a call and cuts the connection immediately, so that part of it, all of it or nothing arrives. */
  async callAndCut<M extends MethodName>(method: M, params: Params<M>, afterBytes: "some" | "all"): Promise<void> {
    const sent = Promise.withResolvers<void>();
    this.#socket.send(JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }), () => sent.resolve());
    if (afterBytes === "all") await sent.promise;
    this.#wire.destroy();
    await this.ended;
  }

  close(): void {
    this.#socket.terminate();
  }

  #receive(text: string): void {
    const message = JSON.parse(text) as Record<string, unknown>;
    const { id, method, params, error, result } = message;
    if (typeof method === "string") {
      this.#onNotification(this, method, params as Record<string, unknown>, text);
      return;
    }
    const pending = this.#pending.get(id as number);
    this.#pending.delete(id as number);
    if (isErrorObject(error)) pending?.reject(daemonError(error));
    else pending?.resolve(result);
  }
}
