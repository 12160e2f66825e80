import { createJSONRPCErrorResponse, type JSONRPCID, type JSONRPCRequest, JSONRPCServer } from "json-rpc-2.0";
import type { Logger } from "pino";
import { WireError } from "../../protocol/errors.ts";
import { isMethodName, methods } from "../../protocol/methods.ts";
import { CANCEL_METHOD, type RpcResponse } from "../../protocol/wire.ts";
import { type BatchLimits, writtenBatch } from "./answer-text.ts";
import type { Call, Peer } from "./call.ts";
import { errorObject, toWireError } from "./errors.ts";
import type { Grant } from "./grant.ts";
import { createInvoke, type InvocationOptions, type Invoke } from "./invocation.ts";
import { OpenCall } from "./open-call.ts";
import { type JsonLimits, parseJson } from "./parse.ts";

export interface DispatcherLimits extends JsonLimits, BatchLimits {
  readonly maxBatchLength: number;
  /** Calls of one conversation that are not answered yet. */
  readonly maxCallsInFlight: number;
  /** The texts of these calls together. One call alone may be longer. */
  readonly maxBytesInFlight: number;
}

export const defaultDispatcherLimits: DispatcherLimits = {
  maxNestingDepth: 128,
  maxJsonParts: 250_000,
  maxObjectKeys: 10_000,
  maxBatchLength: 100,
  maxBatchAnswerBytes: 8 * 1024 * 1024,
  maxCallsInFlight: 1_000,
  maxBytesInFlight: 64 * 1024 * 1024,
};

export interface DispatcherOptions extends InvocationOptions {
  readonly limits?: Partial<DispatcherLimits> | undefined;
}

/** What one peer says, in any number of texts. */
export interface Conversation {
  /**
   * Answers one text: a request, a notification or a batch. Resolves with the answer, or undefined where the
   * specification wants none. Never rejects.
   */
  receive(text: Buffer): Promise<RpcResponse | readonly RpcResponse[] | undefined>;
  /**
   * Answers one call whose parts were taken from elsewhere than a JSON-RPC text: at once where its handler does. Never throws,
   * and never rejects.
   */
  call(method: string, params: object): RpcResponse | Promise<RpcResponse>;
  /** Cancels all calls that are under way: their peer has gone. */
  end(): void;
}

export interface Dispatcher {
  /**
   * `grant` is what the peer's token allows; without one, nothing that is looked at is allowed. `isLocal`: it speaks over the
   * Unix socket. Default: it does not.
   */
  converse(peer: Peer | undefined, grant: Grant | undefined, isLocal?: boolean): Conversation;
}

/** JSON-RPC 2.0 to the letter, through json-rpc-2.0, over the method table. */
export function createDispatcher(options: DispatcherOptions): Dispatcher {
  const limits = { ...defaultDispatcherLimits, ...options.limits };
  const invoke = createInvoke(options);
  const own = { server: createServer(invoke), invoke, limits, log: options.log };
  return { converse: (peer, grant, isLocal = false) => new DispatcherConversation({ ...own, peer, grant, isLocal }) };
}

function createServer(invoke: Invoke): JSONRPCServer<Call> {
  const server = new JSONRPCServer<Call>({ errorListener: () => {} });
  server.mapErrorToJSONRPCErrorResponse = (id: JSONRPCID, error: WireError) => {
    const { code, message, data } = errorObject(error);
    return createJSONRPCErrorResponse(id, code, message, data);
  };
  // Not as middleware: it would copy each request, and wait for two promises more.
  for (const name of Object.keys(methods)) {
    server.addMethod(name, (params: unknown, call: Call) => invoke(name, params, call) as PromiseLike<unknown>);
  }
  return server;
}

interface ConversationOptions {
  readonly server: JSONRPCServer<Call>;
  readonly invoke: Invoke;
  readonly limits: DispatcherLimits;
  readonly log: Logger;
  readonly peer: Peer | undefined;
  readonly grant: Grant | undefined;
  readonly isLocal: boolean;
}

class DispatcherConversation implements Conversation {
  readonly #options: ConversationOptions;
  readonly #open = new Map<unknown, OpenCall>();
  #bytesInFlight = 0;

  constructor(options: ConversationOptions) {
    this.#options = options;
  }

  receive(text: Buffer): Promise<RpcResponse | readonly RpcResponse[] | undefined> {
    const { log, limits } = this.#options;
    let value: unknown;
    try {
      value = parseJson(text, limits);
    } catch (error) {
      return Promise.resolve(failure(null, toWireError(error, log)));
    }
    // The text itself, in which there may be more than in its value, is not kept until the answer.
    return this.#take(value, text.length);
  }

  async #take(value: unknown, length: number): Promise<RpcResponse | readonly RpcResponse[] | undefined> {
    const answered: (() => void)[] = [];
    const hasRoom = this.#bytesInFlight === 0 || this.#bytesInFlight + length <= this.#options.limits.maxBytesInFlight;
    if (hasRoom) this.#bytesInFlight += length;
    try {
      if (Array.isArray(value)) return await this.#batch(value, hasRoom, answered);
      return await this.#one(value, hasRoom, answered);
    } finally {
      if (hasRoom) this.#bytesInFlight -= length;
      this.#afterwards(answered);
    }
  }

  call(method: string, params: object): RpcResponse | Promise<RpcResponse> {
    const { peer, grant, isLocal, limits, invoke } = this.#options;
    if (this.#open.size >= limits.maxCallsInFlight) return failure(1, tooMany("calls"));
    const call = new OpenCall(peer, grant, isLocal);
    this.#open.set(call, call);
    const answered = (answer: RpcResponse): RpcResponse => {
      this.#open.delete(call);
      this.#afterwards(call.takeAnswered());
      return answer;
    };
    try {
      const result = invoke(method, params, call);
      if (!(result instanceof Promise)) return answered(success(1, result));
      return result.then(
        (value) => answered(success(1, value)),
        (error) => answered(failure(1, error)),
      );
    } catch (error) {
      return answered(failure(1, error as WireError));
    }
  }

  end(): void {
    for (const call of this.#open.values()) call.cancel("The connection has gone.");
  }

  /** The answer is sent in this turn of the event loop. One that fails keeps nothing from the others. */
  #afterwards(answered: readonly (() => void)[]): void {
    if (answered.length === 0) return;
    setImmediate(() => {
      for (const then of answered) {
        try {
          then();
        } catch (error) {
          this.#options.log.error({ err: error }, "what was to follow an answer has failed");
        }
      }
    });
  }

  /** `answered` gets what is to be done when the answer is given. */
  async #batch(
    value: readonly unknown[],
    hasRoom: boolean,
    answered: (() => void)[],
  ): Promise<RpcResponse | readonly RpcResponse[] | undefined> {
    const { limits, log } = this.#options;
    const { maxBatchLength } = limits;
    if (value.length === 0)
      return failure(null, new WireError("invalid_request", "A batch holds at least one request."));
    if (value.length > maxBatchLength) {
      const why = `A batch holds at most ${maxBatchLength} requests.`;
      return failure(null, new WireError("invalid_request", why, { maxBatchLength }));
    }
    const answers = await Promise.all(value.map((request) => this.#one(request, hasRoom, answered)));
    const given = answers.filter((answer) => answer !== undefined);
    return given.length === 0 ? undefined : await writtenBatch(given, limits, log);
  }

  async #one(value: unknown, hasRoom: boolean, answered: (() => void)[]): Promise<RpcResponse | undefined> {
    const request = checkedRequest(value);
    if (request instanceof WireError) return failure(idOf(value), request);
    if (request === undefined) return undefined;
    if (request.method === CANCEL_METHOD) {
      this.#cancel(request.params);
      return request.id === undefined ? undefined : { jsonrpc: "2.0", id: request.id, result: null };
    }
    if (!hasRoom || this.#open.size >= this.#options.limits.maxCallsInFlight) {
      const error = tooMany(hasRoom ? "calls" : "bytes of calls");
      return request.id === undefined ? undefined : failure(request.id, error);
    }
    const { peer, grant, isLocal } = this.#options;
    const call = new OpenCall(peer, grant, isLocal);
    // Two calls under the same id may be under way; only the first can be cancelled.
    const key = request.id === undefined || this.#open.has(request.id) ? call : request.id;
    this.#open.set(key, call);
    try {
      // The library knows the methods of the table alone, and says less of others.
      if (!isMethodName(request.method)) return this.#unknown(request, call);
      return ((await this.#options.server.receive(request, call)) as RpcResponse | null) ?? undefined;
    } finally {
      this.#open.delete(key);
      answered.push(...call.takeAnswered());
    }
  }

  #unknown({ method, params, id }: JSONRPCRequest, call: Call): RpcResponse | undefined {
    try {
      this.#options.invoke(method, params, call);
      return undefined;
    } catch (error) {
      return id === undefined ? undefined : failure(id, error as WireError);
    }
  }

  #cancel(params: unknown): void {
    if (typeof params !== "object" || params === null || !("id" in params)) return;
    this.#open.get(params.id)?.cancel("The call was cancelled.");
  }
}

/** The request, undefined for a response (which nobody here has asked for), or why it is none. */
function checkedRequest(value: unknown): JSONRPCRequest | WireError | undefined {
  const problem = (why: string): WireError =>
    new WireError("invalid_request", `This is not a JSON-RPC 2.0 request: ${why}.`);
  if (typeof value !== "object" || value === null || Array.isArray(value)) return problem("it is not an object");
  const { jsonrpc, method, id, params } = value as Record<string, unknown>;
  if (jsonrpc !== "2.0") return problem('jsonrpc is not "2.0"');
  if (method === undefined && ("result" in value || "error" in value)) return undefined;
  if (typeof method !== "string") return problem("method is not a string");
  if (id !== undefined && id !== null && !isWritableId(id))
    return problem("id is not a string, null, or a number that can be written again as it is");
  if ("result" in value || "error" in value) return problem("it is a request and a response at once");
  if (params !== undefined && (typeof params !== "object" || params === null))
    return problem("params is not an object or array");
  return value as JSONRPCRequest;
}

function idOf(value: unknown): JSONRPCID {
  if (typeof value !== "object" || value === null || !("id" in value)) return null;
  return isWritableId(value.id) ? value.id : null;
}

/**
 * Whether it can be answered under the very same id: a number too great for JSON's reader would be written as null, an
 * integer above 2^53 as another one.
 */
function isWritableId(id: unknown): id is string | number {
  return typeof id === "string" || Number.isSafeInteger(id) || (Number.isFinite(id) && !Number.isInteger(id));
}

function tooMany(what: string): WireError {
  const why = `Too many ${what} of this connection wait for their answer.`;
  return new WireError("overloaded", why, { retryAfterMs: 1_000 });
}

function success(id: JSONRPCID, result: unknown): RpcResponse {
  return { jsonrpc: "2.0", id, result: result ?? null };
}

function failure(id: JSONRPCID, error: WireError): RpcResponse {
  return { jsonrpc: "2.0", id, error: errorObject(error) };
}
