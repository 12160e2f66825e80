import { createJSONRPCErrorResponse, type JSONRPCID, type JSONRPCRequest, JSONRPCServer } from "json-rpc-2.0";
import type { Logger } from "pino";
import { WireError } from "../../protocol/errors.ts";
import { isMethodName, type MethodName, methods } from "../../protocol/methods.ts";
import type { Validator } from "../../protocol/validation.ts";
import { CANCEL_METHOD, type RpcResponse } from "../../protocol/wire.ts";
import type { Call, Handlers, Peer } from "./call.ts";
import { errorObject, toWireError } from "./errors.ts";
import { OpenCall } from "./open-call.ts";
import { parseJson } from "./parse.ts";

export interface DispatcherLimits {
  readonly maxNestingDepth: number;
  readonly maxBatchLength: number;
  /** Calls of one conversation that are not answered yet. */
  readonly maxCallsInFlight: number;
}

export const defaultDispatcherLimits: DispatcherLimits = {
  maxNestingDepth: 128,
  maxBatchLength: 100,
  maxCallsInFlight: 1_000,
};

export interface DispatcherOptions {
  readonly handlers: Handlers;
  readonly validator: Validator;
  /** Checks what handlers return, too (for tests). */
  readonly validateResults: boolean;
  readonly log: Logger;
  readonly limits?: DispatcherLimits | undefined;
}

/** What one peer says, in any number of texts. */
export interface Conversation {
  /**
   * Answers one text: a request, a notification or a batch. Resolves with the answer, or undefined where the
   * specification wants none. Never rejects.
   */
  receive(text: Buffer): Promise<RpcResponse | readonly RpcResponse[] | undefined>;
  /** Cancels all calls that are under way: their peer has gone. */
  end(): void;
}

export interface Dispatcher {
  converse(peer: Peer | undefined): Conversation;
}

/** A finding's path may hold a key of any length. */
const maxPathLength = 200;

/** JSON-RPC 2.0 to the letter, through json-rpc-2.0, over the method table. */
export function createDispatcher(options: DispatcherOptions): Dispatcher {
  const limits = options.limits ?? defaultDispatcherLimits;
  const server = createServer(options);
  return { converse: (peer) => new DispatcherConversation({ server, limits, log: options.log, peer }) };
}

function createServer({ handlers, validator, validateResults, log }: DispatcherOptions): JSONRPCServer<Call> {
  const server = new JSONRPCServer<Call>({ errorListener: () => {} });
  server.mapErrorToJSONRPCErrorResponse = (id: JSONRPCID, error: unknown) => {
    const { code, message, data } = errorObject(toWireError(error, log));
    return createJSONRPCErrorResponse(id, code, message, data);
  };
  server.applyMiddleware(async (next, request, call) => {
    if (!isMethodName(request.method)) {
      throw new WireError(
        "method_not_found",
        `There is no method ${JSON.stringify(request.method.slice(0, 100))}. rpc.discover lists all.`,
      );
    }
    return await next({ ...request, params: checkedParams(request.method, request.params, validator) }, call);
  });
  for (const name of Object.keys(methods) as MethodName[]) {
    const handler = handlers[name] as (params: unknown, call: Call) => unknown;
    server.addMethod(name, async (params: unknown, call: Call) => {
      const result = await handler(params, call);
      if (validateResults) checkResult(name, result, validator);
      return result;
    });
  }
  return server;
}

function checkedParams(method: MethodName, params: unknown, validator: Validator): unknown {
  if (Array.isArray(params)) {
    throw new WireError("invalid_params", `${method} takes its params by name, not by position.`, {
      findings: [{ path: "", message: "must be an object" }],
    });
  }
  const value = params ?? {};
  const findings = validator
    .params(method, value)
    .map(({ path, message }) => ({ path: path.slice(0, maxPathLength), message }));
  if (findings.length === 0) return value;
  const list = findings.map(({ path, message }) => `${path === "" ? "params" : path} ${message}`).join("; ");
  throw new WireError("invalid_params", `The params of ${method} are wrong: ${list}.`, { findings });
}

function checkResult(method: MethodName, result: unknown, validator: Validator): void {
  // What crosses the wire has no undefined in it.
  const findings = validator.result(method, JSON.parse(JSON.stringify(result)));
  if (findings.length > 0)
    throw new Error(`The result of ${method} is not what the table says: ${JSON.stringify(findings)}`);
}

interface ConversationOptions {
  readonly server: JSONRPCServer<Call>;
  readonly limits: DispatcherLimits;
  readonly log: Logger;
  readonly peer: Peer | undefined;
}

class DispatcherConversation implements Conversation {
  readonly #options: ConversationOptions;
  readonly #open = new Map<unknown, OpenCall>();

  constructor(options: ConversationOptions) {
    this.#options = options;
  }

  async receive(text: Buffer): Promise<RpcResponse | readonly RpcResponse[] | undefined> {
    const { log, limits } = this.#options;
    let value: unknown;
    try {
      value = parseJson(text, limits.maxNestingDepth);
    } catch (error) {
      return failure(null, toWireError(error, log));
    }
    if (!Array.isArray(value)) return await this.#one(value);
    if (value.length === 0)
      return failure(null, new WireError("invalid_request", "A batch holds at least one request."));
    if (value.length > limits.maxBatchLength) {
      return failure(
        null,
        new WireError("invalid_request", `A batch holds at most ${limits.maxBatchLength} requests.`, { ...limits }),
      );
    }
    const answers = await Promise.all(value.map((request) => this.#one(request)));
    const given = answers.filter((answer) => answer !== undefined);
    return given.length === 0 ? undefined : given;
  }

  end(): void {
    for (const call of this.#open.values()) call.cancel("The connection has gone.");
  }

  async #one(value: unknown): Promise<RpcResponse | undefined> {
    const request = checkedRequest(value);
    if (request instanceof WireError) return failure(idOf(value), request);
    if (request === undefined) return undefined;
    if (request.method === CANCEL_METHOD) {
      this.#cancel(request.params);
      return request.id === undefined ? undefined : { jsonrpc: "2.0", id: request.id, result: null };
    }
    if (this.#open.size >= this.#options.limits.maxCallsInFlight) {
      const error = new WireError("overloaded", "Too many calls of this connection wait for their answer.", {
        retryAfterMs: 1_000,
      });
      return request.id === undefined ? undefined : failure(request.id, error);
    }
    const call = new OpenCall(this.#options.peer);
    // Two calls under the same id may be under way; only the first can be cancelled.
    const key = request.id === undefined || this.#open.has(request.id) ? call : request.id;
    this.#open.set(key, call);
    try {
      return ((await this.#options.server.receive(request, call)) as RpcResponse | null) ?? undefined;
    } finally {
      this.#open.delete(key);
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
  if (id !== undefined && id !== null && !isWritableId(id)) return problem("id is not a string, finite number or null");
  if ("result" in value || "error" in value) return problem("it is a request and a response at once");
  if (params !== undefined && (typeof params !== "object" || params === null))
    return problem("params is not an object or array");
  return value as JSONRPCRequest;
}

function idOf(value: unknown): JSONRPCID {
  if (typeof value !== "object" || value === null || !("id" in value)) return null;
  return isWritableId(value.id) ? value.id : null;
}

/** A number too great for JSON's reader is infinite, and would be written as null. */
function isWritableId(id: unknown): id is string | number {
  return typeof id === "string" || Number.isFinite(id);
}

function failure(id: JSONRPCID, error: WireError): RpcResponse {
  return { jsonrpc: "2.0", id, error: errorObject(error) };
}
