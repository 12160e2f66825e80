import { WireError } from "../protocol/errors.ts";
import { isRecord } from "../protocol/objects.ts";
import { AcpError } from "./acp-error.ts";
import { checkParams, isValidAnswer } from "./incoming.ts";
import { acpErrorOf } from "./known-errors.ts";
import type { Outbox } from "./outbox.ts";

type RequestId = string | number | null;

/** What answers a client's messages. */
export interface Handlers {
  /** Resolves with the result, and what to do once it is out. Rejects with the error of the answer. */
  request(method: string, params: Params, signal: AbortSignal): Promise<Answer>;
  notification(method: string, params: Params): void;
}

export type Params = Readonly<Record<string, unknown>>;

export interface Answer {
  readonly result: object;
  readonly after?: () => void;
}

/** Answers a request of one method. Rejects with the error of the answer. */
export type Method = (params: Params, signal: AbortSignal) => Promise<Answer>;

/** Unanswered requests of one client. */
const maxPending = 256;
const cancelMethod = "$/cancel_request";

/** JSON-RPC 2.0 with a client, with requests in both directions. Ours have ids of their own. */
export class RpcPeer {
  readonly #outbox: Outbox;
  readonly #handlers: Handlers;
  /** Of the client's requests. It may use an id again before the answer. */
  readonly #pending = new Map<AbortController, RequestId>();
  /** Our requests. */
  readonly #asked = new Map<string, { readonly method: string; readonly answer: PromiseWithResolvers<Params> }>();
  #count = 0;
  /** The version of ACP that the client has. */
  version: 1 | 2 = 1;

  constructor(outbox: Outbox, handlers: Handlers) {
    this.#outbox = outbox;
    this.#handlers = handlers;
  }

  /** Handles one message of the client. Resolves when it is answered, or needs no answer. */
  async receive(text: Buffer, parse: (text: Buffer) => unknown): Promise<void> {
    let message: unknown;
    try {
      message = parse(text);
    } catch (error) {
      const exceedsLimit = error instanceof WireError && error.kind === "invalid_request";
      if (exceedsLimit) this.#fail(null, new AcpError("invalidRequest", error.message));
      else this.#fail(null, new AcpError("parseError", "The message is not JSON."));
      return;
    }
    await this.#handle(message);
  }

  async #handle(message: unknown): Promise<void> {
    if (!isRecord(message) || message["jsonrpc"] !== "2.0") {
      const why = Array.isArray(message) ? "Batches are not part of ACP." : "The message is not JSON-RPC 2.0.";
      this.#fail(isRecord(message) ? idIn(message) : null, new AcpError("invalidRequest", why));
      return;
    }
    const { method, params } = message;
    const isObject = params === undefined || params === null || isRecord(params);
    if (typeof method !== "string") this.#answered(message);
    else if (!("id" in message)) {
      if (isObject) this.#notified(method, params ?? {});
    } else if (!isObject) this.#fail(idIn(message), new AcpError("invalidParams", "The params are not an object."));
    else if (!isRequestId(message["id"]) || (message["id"] === null && this.version === 2))
      this.#fail(null, new AcpError("invalidRequest", "The id has a wrong type."));
    else await this.#requested(message["id"], method, params ?? {});
  }

  /** Asks the client. Rejects with its error. If `signal` is aborted, the client is told that the answer has no use. */
  async request(method: string, params: object, signal: AbortSignal): Promise<Params> {
    signal.throwIfAborted();
    this.#count += 1;
    const id = `pi-rpcd-${this.#count}`;
    const answer = Promise.withResolvers<Params>();
    this.#asked.set(id, { method, answer });
    const abandon = (): void => {
      this.#asked.delete(id);
      this.#outbox.send({ jsonrpc: "2.0", method: cancelMethod, params: { requestId: id } });
      answer.reject(signal.reason);
    };
    signal.addEventListener("abort", abandon, { once: true });
    this.#outbox.send({ jsonrpc: "2.0", id, method, params });
    try {
      return await answer.promise;
    } finally {
      this.#asked.delete(id);
      signal.removeEventListener("abort", abandon);
    }
  }

  /** The client has gone: what it asked for is cancelled, and it answers nothing more. */
  close(): void {
    const gone = new AcpError("requestCancelled", "The client has gone.");
    for (const { answer } of this.#asked.values()) answer.reject(gone);
    this.#asked.clear();
    for (const controller of this.#pending.keys()) controller.abort(gone);
  }

  /** Answers everything that is pending with this error. */
  failAll(error: AcpError): void {
    for (const id of this.#pending.values()) this.#fail(id, error);
    this.#pending.clear();
  }

  #notified(method: string, params: Params): void {
    if (method === cancelMethod) {
      const { requestId } = params;
      for (const [controller, id] of this.#pending)
        if (id === requestId) controller.abort(new AcpError("requestCancelled", "The client cancelled the request."));
      return;
    }
    try {
      checkParams(method, params, this.version);
    } catch {
      return;
    }
    this.#handlers.notification(method, params);
  }

  async #requested(id: RequestId, method: string, params: Params): Promise<void> {
    if (this.#pending.size >= maxPending) {
      this.#fail(id, new AcpError("internalError", `More than ${maxPending} requests wait for their answers.`));
      return;
    }
    const controller = new AbortController();
    this.#pending.set(controller, id);
    try {
      checkParams(method, params, this.version);
      const { result, after } = await this.#handlers.request(method, params, controller.signal);
      if (!this.#pending.has(controller)) return;
      // Throws for a result without JSON, such as one that is nested too deep.
      this.#outbox.send({ jsonrpc: "2.0", id, result });
      this.#pending.delete(controller);
      after?.();
    } catch (error) {
      if (this.#pending.delete(controller)) this.#fail(id, acpErrorOf(error));
    }
  }

  #answered(message: Params): void {
    const { id, result, error } = message;
    const asked = typeof id === "string" ? this.#asked.get(id) : undefined;
    if (asked === undefined) {
      // An answer that comes too late is ignored. A message without method and answer is an error.
      if (!("id" in message) || !("result" in message || "error" in message))
        this.#fail(idIn(message), new AcpError("invalidRequest", "The message has no method."));
      return;
    }
    if (isRecord(result) && isValidAnswer(asked.method, result, this.version)) asked.answer.resolve(result);
    else asked.answer.reject(new AcpError("internalError", wordsOf(error)));
  }

  #fail(id: RequestId, { code, message, data }: AcpError): void {
    const error = { code, message, ...(data === undefined ? {} : { data }) };
    this.#outbox.send({ jsonrpc: "2.0", id, error });
  }
}

function isRequestId(id: unknown): id is RequestId {
  return id === null || typeof id === "string" || Number.isInteger(id);
}

function idIn({ id }: Params): RequestId {
  return isRequestId(id) ? id : null;
}

function wordsOf(error: unknown): string {
  return isRecord(error) && typeof error["message"] === "string" ? error["message"] : "The answer is not valid.";
}
