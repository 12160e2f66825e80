import { JSONRPCClient, type JSONRPCResponse } from "json-rpc-2.0";
import type { ErrorData } from "../protocol/errors.ts";
import { CANCEL_METHOD, type RpcRequest } from "../protocol/wire.ts";
import { daemonError, isErrorObject } from "./daemon-error.ts";
import type { OnDiagnostic } from "./diagnostic.ts";
import { ConnectionClosedError, ProtocolViolationError } from "./local-errors.ts";
import { isRefusedFor } from "./refused-text.ts";
import type { OpenSocket, Socket, SocketEnd } from "./socket.ts";

/** How a connection ended. `closed`: by `close()`; `ended`: by the daemon or the network; `failed`: this client gave up. */
export type ConnectionEnd = SocketEnd & { readonly kind: "closed" | "ended" | "failed" };

export interface ChannelOptions {
  /** Called for each notification, in the order of arrival, with the text of its frame. */
  readonly onNotification: (method: string, params: unknown, frame: string) => void;
  /** Called once, with the first reason, before pending requests are rejected. */
  readonly onEnd: (end: ConnectionEnd, error: Error) => void;
  readonly onDiagnostic: OnDiagnostic;
}

const maxDiagnosticChars = 256;

/** The answer has a result or an error. */
type OnAnswer = (answer: { readonly result: unknown } | { readonly error: Error }) => void;

/**
 * An answer made by this client: the request was abandoned, or the connection ended. json-rpc-2.0 can reject requests only with
 * `rejectAllPendingRequests(message)`, for all at once and without the error object, so each one gets an answer with its error.
 */
class LocalAnswer {
  readonly error: unknown;
  constructor(error: unknown) {
    this.error = error;
  }
}

/** JSON-RPC over one socket. It ends with its socket; a client that reconnects opens another channel. */
export class Channel {
  readonly #options: ChannelOptions;
  readonly #rpc = new JSONRPCClient<void>((request) => this.#send(request));
  readonly #pending = new Map<number, { readonly request: RpcRequest; readonly onAnswer: OnAnswer | undefined }>();
  readonly #gone = Promise.withResolvers<ConnectionEnd>();
  #socket: Socket | undefined;
  #lastId = 0;
  #ending: { readonly end: ConnectionEnd; readonly error: Error } | undefined;

  private constructor(options: ChannelOptions) {
    this.#options = options;
  }

  static async open(openSocket: OpenSocket, options: ChannelOptions): Promise<Channel> {
    const channel = new Channel(options);
    await channel.#open(openSocket);
    return channel;
  }

  /** Resolves when the socket is closed, with the first reason. */
  get closed(): Promise<ConnectionEnd> {
    return this.#gone.promise;
  }

  /** How it ended, and the error that rejects its pending requests; undefined while it is open. */
  get ending(): { readonly end: ConnectionEnd; readonly error: Error } | undefined {
    return this.#ending;
  }

  /**
   * Sends a request. Rejects with the daemon's error, the reason of `signal` (the daemon is told to cancel the request, but
   * the call may have taken effect), or a `ConnectionClosedError`. `onAnswer`: called when the daemon's answer arrives,
   * before anything that arrived after it; the promise settles later.
   */
  async request(method: string, params: unknown, signal?: AbortSignal, onAnswer?: OnAnswer): Promise<unknown> {
    signal?.throwIfAborted();
    if (this.#ending !== undefined) throw this.#ending.error;
    this.#lastId += 1;
    const id = this.#lastId;
    const abandon = (): void => {
      this.#answer(id, signal?.reason);
      this.#send({ jsonrpc: "2.0", method: CANCEL_METHOD, params: { id } });
    };
    const request = { jsonrpc: "2.0", id, method, params } as const;
    this.#pending.set(id, { request, onAnswer });
    signal?.addEventListener("abort", abandon, { once: true });
    try {
      const response = await this.#rpc.requestAdvanced(request);
      if (response.error === undefined || response.error === null) return response.result;
      if (response.error.data instanceof LocalAnswer) throw response.error.data.error;
      throw daemonError(response.error);
    } finally {
      this.#pending.delete(id);
      signal?.removeEventListener("abort", abandon);
    }
  }

  /** Ends the connection with close code 1000. Idempotent. */
  close(): Promise<ConnectionEnd> {
    this.#end({ kind: "closed", code: 1000, reason: "closed by the client" });
    return this.closed;
  }

  /** Ends the connection because of an error of the peer; pending requests reject with that error. */
  fail(error: Error): void {
    this.#end({ kind: "failed", code: 1002, reason: "the client gave up", error }, error);
  }

  async #open(openSocket: OpenSocket): Promise<void> {
    this.#socket = await openSocket({
      onText: (text) => this.#receive(text),
      onBinary: (byteLength) => this.#options.onDiagnostic({ kind: "binary_frame", byteLength }),
      onEnd: (end) => this.#end({ kind: "ended", ...end }),
    });
  }

  #send(message: Partial<RpcRequest>): void {
    let text: string;
    try {
      text = JSON.stringify(message);
    } catch (error) {
      this.#answer(message.id, error);
      return;
    }
    this.#socket?.send(text);
  }

  #answer(id: unknown, error: unknown): void {
    if (typeof id !== "number") return;
    this.#rpc.receive({ jsonrpc: "2.0", id, error: { code: 0, message: "", data: new LocalAnswer(error) } });
  }

  #receive(text: string): void {
    if (this.#ending !== undefined) return;
    let message: unknown;
    try {
      message = JSON.parse(text);
    } catch (error) {
      this.#options.onDiagnostic({ kind: "unparsable_frame", text: text.slice(0, maxDiagnosticChars), error });
      return;
    }
    if (!Array.isArray(message)) this.#dispatch(message, text);
    else for (const item of message) this.#dispatch(item, text);
  }

  #dispatch(message: unknown, frame: string): void {
    if (typeof message === "object" && message !== null) {
      const { id, method, params } = message as { id?: unknown; method?: unknown; params?: unknown };
      if (typeof method === "string" && id === undefined) {
        this.#options.onNotification(method, params, frame);
        return;
      }
      // The answer to an abandoned request is expected: the library drops it.
      if (method === undefined && typeof id === "number" && id > 0 && id <= this.#lastId) {
        if (!isAnswer(message)) {
          const violation = { path: "", message: "has no result and no error" };
          this.#answer(id, new ProtocolViolationError("answer", [violation]));
          return;
        }
        const { error, result } = message;
        const onAnswer = this.#pending.get(id)?.onAnswer;
        // A second answer with this id means nothing.
        this.#pending.delete(id);
        this.#rpc.receive(message);
        try {
          onAnswer?.(error ? { error: daemonError(error) } : { result });
        } catch (thrown) {
          this.#options.onDiagnostic({ kind: "listener_failed", error: thrown });
        }
        return;
      }
      if (method === undefined && id === null && isAnswer(message) && this.#refused(message.error)) return;
    }
    this.#options.onDiagnostic({ kind: "unexpected_message", message });
  }

  /** The daemon refused a request unread, so the answer has no id. Returns whether a matching request was found. */
  #refused(error: JSONRPCResponse["error"]): boolean {
    const data: unknown = error?.data;
    if (error === undefined || error === null || typeof data !== "object" || data === null) return false;
    const refused = [...this.#pending].filter(([, { request }]) =>
      isRefusedFor(JSON.stringify(request), data as ErrorData),
    );
    for (const [id] of refused) this.#rpc.receive({ jsonrpc: "2.0", id, error });
    return refused.length > 0;
  }

  #end(end: ConnectionEnd, error: Error = new ConnectionClosedError(end)): void {
    if (this.#ending === undefined) {
      this.#ending = { end, error };
      this.#options.onEnd(end, error);
      for (const id of this.#pending.keys()) this.#answer(id, error);
      if (end.kind !== "ended") this.#socket?.close(end.code, end.reason);
    }
    if (end.kind === "ended") this.#gone.resolve(this.#ending.end);
  }
}

function isAnswer(message: object): message is JSONRPCResponse {
  return "error" in message ? isErrorObject(message.error) : "result" in message;
}
