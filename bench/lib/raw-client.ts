import { connect } from "node:net";
import { WebSocket } from "ws";
import type { DaemonFile } from "../../protocol/daemon-file.ts";
import type { MethodName, Params, Result } from "../../protocol/methods.ts";
import { WEBSOCKET_PATH } from "../../protocol/wire.ts";
import type { Resources } from "./figure.ts";

export type Transport = "unix" | "tcp";

/** Two bytes identify the notification `session/event`, so that its frames need not be parsed. */
const methodAt = '{"jsonrpc":"2.0","'.length;
const nameAt = '{"jsonrpc":"2.0","method":"session/'.length;
const m = 0x6d;
const e = 0x65;
const g = 0x67;

/** A WebSocket without our libraries: requests by id, and events as raw frames. */
export class RawClient {
  /** Called for each frame of `session/event`. */
  onEvent: (frame: Buffer) => void = () => {};
  /** Called for each `session/gap`. */
  onGap: () => void = () => {};
  readonly #socket: WebSocket;
  readonly #pending = new Map<number, PromiseWithResolvers<unknown>>();
  #lastId = 0;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.on("message", (frame: Buffer) => this.#receive(frame));
    socket.on("close", (code, reason) => this.#closed(new Error(`The connection ended (${code} ${String(reason)}).`)));
  }

  static async open(
    daemon: Pick<DaemonFile, "socketPath" | "token"> & Partial<DaemonFile>,
    transport: Transport,
    resources: Resources,
  ): Promise<RawClient> {
    const { socketPath, url = "", token } = daemon;
    const socket = new WebSocket(
      `${transport === "unix" ? "ws://localhost" : url.replace("http", "ws")}${WEBSOCKET_PATH}`,
      {
        perMessageDeflate: false,
        maxPayload: 128 * 1024 * 1024,
        headers: { authorization: `Bearer ${token}` },
        ...(transport === "unix" && { createConnection: () => connect({ path: socketPath }) }),
      },
    );
    resources.add(socket, (open) => open.terminate());
    await new Promise((resolve, reject) => socket.once("open", resolve).once("error", reject));
    return new RawClient(socket);
  }

  /** Resolves with the result; rejects with the error's message, or when the connection ends first. */
  request<M extends MethodName>(method: M, params: Params<M>): Promise<Result<M>> {
    this.#lastId += 1;
    const pending = Promise.withResolvers<unknown>();
    this.#pending.set(this.#lastId, pending);
    this.#socket.send(JSON.stringify({ jsonrpc: "2.0", id: this.#lastId, method, params }));
    return pending.promise as Promise<Result<M>>;
  }

  /** Breaks the connection. */
  close(): void {
    this.#socket.terminate();
  }

  /** Stops reading. */
  pause(): void {
    this.#socket.pause();
  }

  #receive(frame: Buffer): void {
    if (frame[methodAt] === m) {
      if (frame[nameAt] === e) this.onEvent(frame);
      else if (frame[nameAt] === g) this.onGap();
      return;
    }
    const { id, result, error } = JSON.parse(frame.toString("utf8"));
    const pending = this.#pending.get(id);
    this.#pending.delete(id);
    if (error === undefined) pending?.resolve(result);
    else pending?.reject(new Error(error.message));
  }

  #closed(error: Error): void {
    for (const { reject } of this.#pending.values()) reject(error);
    this.#pending.clear();
  }
}
