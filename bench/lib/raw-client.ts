import { connect } from "node:net";
import { WebSocket } from "ws";
import type { DaemonFile } from "../../protocol/daemon-file.ts";
import type { MethodName, Params, Result } from "../../protocol/methods.ts";
import { WEBSOCKET_PATH } from "../../protocol/wire.ts";
import { within } from "./deadline.ts";
import type { Resources } from "./figure.ts";

export type Transport = "unix" | "tcp";

/** Two bytes identify the notification `session/event`, so that its frames need not be parsed. */
const methodAt = '{"jsonrpc":"2.0","'.length;
const nameAt = '{"jsonrpc":"2.0","method":"session/'.length;
const m = 0x6d;
const e = 0x65;
const g = 0x67;

const requestSeconds = 60;

interface Pending {
  readonly what: string;
  readonly since: number;
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: Error) => void;
}

/** A WebSocket without our libraries: requests by id, and events as raw frames. */
export class RawClient {
  /** Called for each frame of `session/event`. */
  onEvent: (frame: Buffer) => void = () => {};
  /** Called for each frame of `session/gap`. */
  onGap: (frame: Buffer) => void = () => {};
  /** Called for each other message without an id: a record that a bare relay passes on. */
  onRecord: () => void = () => {};
  readonly #socket: WebSocket;
  readonly #pending = new Map<number, Pending>();
  readonly #watch: NodeJS.Timeout;
  #lastId = 0;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    // One timer for all requests, so that none pays for its own.
    this.#watch = setInterval(() => this.#rejectLate(), 1_000).unref();
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
    const opened = new Promise((resolve, reject) => socket.once("open", resolve).once("error", reject));
    await within(requestSeconds, "a WebSocket", opened);
    return new RawClient(socket);
  }

  /** Resolves with the result; rejects with the error's message, when the connection ends first, or after a minute. */
  request<M extends MethodName>(method: M, params: Params<M>): Promise<Result<M>> {
    return this.#ask(method, { jsonrpc: "2.0", method, params }) as Promise<Result<M>>;
  }

  /** Sends a command of pi to a bare relay, which passes it on. */
  async passOn(command: { readonly type: string; readonly [field: string]: unknown }): Promise<void> {
    await this.#ask(command.type, command);
  }

  /** Breaks the connection. */
  close(): void {
    this.#socket.terminate();
  }

  /** Stops reading. */
  pause(): void {
    this.#socket.pause();
  }

  #ask(what: string, frame: object): Promise<unknown> {
    this.#lastId += 1;
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    this.#pending.set(this.#lastId, { what, since: performance.now(), resolve, reject });
    this.#socket.send(JSON.stringify({ ...frame, id: this.#lastId }));
    return promise;
  }

  /** Requests are kept in their order: the first is the oldest. */
  #rejectLate(): void {
    for (const [id, { what, since, reject }] of this.#pending) {
      if (performance.now() - since < requestSeconds * 1_000) return;
      this.#pending.delete(id);
      reject(new Error(`${what} was not answered within ${requestSeconds} s.`));
    }
  }

  #receive(frame: Buffer): void {
    if (frame[methodAt] === m) {
      if (frame[nameAt] === e) this.onEvent(frame);
      else if (frame[nameAt] === g) this.onGap(frame);
      return;
    }
    const { id, result, error } = JSON.parse(frame.toString("utf8"));
    if (id === undefined) {
      this.onRecord();
      return;
    }
    const pending = this.#pending.get(id);
    this.#pending.delete(id);
    if (error === undefined) pending?.resolve(result);
    else pending?.reject(new Error(error.message));
  }

  #closed(error: Error): void {
    clearInterval(this.#watch);
    for (const { reject } of this.#pending.values()) reject(error);
    this.#pending.clear();
  }
}
