import { createJSONRPCErrorResponse, type JSONRPCID, type JSONRPCRequest, JSONRPCServer } from "json-rpc-2.0";
import type { Logger } from "pino";
import { WireError } from "../../protocol/errors.ts";
import { methods } from "../../protocol/methods.ts";
import { CANCEL_METHOD, type RpcResponse } from "../../protocol/wire.ts";
import type { AnswerPlace } from "../log/answer-order.ts";
import { BatchAnswers, type BatchLimits } from "./batch-answers.ts";
import { behindFrames, type Call, OpenCall, type Peer } from "./call.ts";
import { errorObject, toWireError } from "./errors.ts";
import type { Grant } from "./grant.ts";
import { createInvoke, type InvocationOptions, type Invoke, methodNotFound } from "./invocation.ts";
import { type JsonLimits, parseJson } from "./parse.ts";
import { namedTokensPercent, Quota } from "./quota.ts";
import { type Lane, Turns } from "./turns.ts";

export interface DispatcherLimits extends JsonLimits, BatchLimits {
  readonly maxBatchLength: number;
  /** Open calls of one conversation. */
  readonly maxCallsInFlight: number;
  /** All texts of these calls. A single call may be longer. */
  readonly maxBytesInFlight: number;
  /** Memory of the open calls of all conversations: {@link callBytes} each, and their texts. */
  readonly maxCallBytes: number;
  /** The same for one named token. */
  readonly maxCallBytesPerToken: number;
}

/** Memory of an open call without its text, rounded up: its objects, timers and promises. */
export const callBytes = 8 * 1024;

export const defaultDispatcherLimits: DispatcherLimits = {
  maxNestingDepth: 128,
  maxJsonParts: 250_000,
  maxObjectKeys: 10_000,
  maxBatchLength: 100,
  maxBatchAnswerBytes: 8 * 1024 * 1024,
  maxBatchBytes: 128 * 1024 * 1024,
  maxBatchBytesPerToken: 24 * 1024 * 1024,
  maxCallsInFlight: 1_000,
  maxBytesInFlight: 64 * 1024 * 1024,
  maxCallBytes: 256 * 1024 * 1024,
  maxCallBytesPerToken: 48 * 1024 * 1024,
};

export interface DispatcherOptions extends InvocationOptions {
  readonly limits?: Partial<DispatcherLimits> | undefined;
}

/** Undefined: a notification has no answer. */
export type Answer = RpcResponse | readonly RpcResponse[] | undefined;

/** Writes an answer. */
export type Give = (answer: Answer, place?: AnswerPlace) => void;

/** The texts of one peer. */
export interface Conversation {
  /**
   * Answers one text: a request, a notification or a batch. Resolves with the answer, or with undefined if the
   * specification requires none. Never rejects. `give` writes the answer before that, in the token's turn, and must not throw:
   * at its place among the notifications, if it has one.
   */
  receive(text: Buffer, give?: Give): Promise<Answer>;
  /**
   * Answers one call that was not a JSON-RPC text, synchronously if its handler does. Never throws, and never rejects.
   * `signal` cancels it.
   */
  call(method: string, params: object, signal?: AbortSignal): RpcResponse | Promise<RpcResponse>;
  /** Cancels all open calls, because their peer has gone. */
  end(): void;
}

export interface Dispatcher {
  /**
   * `grant`: what the peer's token allows. Without one, every checked call is refused. `isLocal`: the peer uses the Unix
   * socket. Default: false.
   */
  converse(peer: Peer | undefined, grant: Grant | undefined, isLocal?: boolean): Conversation;
  /** The turns of a token, for other work that is done for it. */
  lane(grant: Grant | undefined): Lane;
}

/** JSON-RPC 2.0 over the method table, exactly as specified. */
export function createDispatcher(options: DispatcherOptions): Dispatcher {
  const limits = { ...defaultDispatcherLimits, ...options.limits };
  const invoke = createInvoke(options);
  const calls = new Quota({
    what: `bytes of open calls (${callBytes} each, and their texts)`,
    max: limits.maxCallBytes,
    maxPerToken: limits.maxCallBytesPerToken,
    namedTokensPercent,
  });
  const batches = new Quota({
    what: "bytes of answers to incomplete batches",
    max: limits.maxBatchBytes,
    maxPerToken: limits.maxBatchBytesPerToken,
    namedTokensPercent,
  });
  const turns = new Turns();
  const own = { server: createServer(invoke), invoke, limits, calls, batches, log: options.log };
  return {
    converse: (peer, grant, isLocal = false) =>
      new DispatcherConversation({ ...own, lane: turns.of(grant), peer, grant, isLocal }),
    lane: (grant) => turns.of(grant),
  };
}

/**
 * json-rpc-2.0 finds the method of a request, runs it and makes the response. The rest of its features is not used:
 *
 * - `receiveJSON` parses without limits, so {@link parseJson} does it.
 * - A batch for `receive` runs all requests at once and collects all answers. Here each request has its own turn, and
 *   the answers share a budget. `receive` also answers responses; the daemon ignores them.
 * - A middleware would wait for two more promises with each request, so policies are bound to the methods.
 * - A call with parts from an HTTP request is not a JSON-RPC text: {@link Conversation.call} invokes the method itself.
 */
function createServer(invoke: Invoke): JSONRPCServer<Call> {
  // Invocations log their errors.
  const server = new JSONRPCServer<Call>({ errorListener: () => {} });
  const refusal = (id: JSONRPCID, error: WireError) => {
    const { code, message, data } = errorObject(error);
    return createJSONRPCErrorResponse(id, code, message, data);
  };
  server.mapErrorToJSONRPCErrorResponse = refusal;
  server.handleMethodNotFound = async ({ id, method }) =>
    id === undefined ? null : refusal(id, methodNotFound(method));
  for (const name of Object.keys(methods)) {
    server.addMethod(name, (params: unknown, call) => invoke(name, params, call));
  }
  return server;
}

interface ConversationOptions {
  readonly server: JSONRPCServer<Call>;
  readonly invoke: Invoke;
  readonly limits: DispatcherLimits;
  /** The memory of the open calls of all conversations. */
  readonly calls: Quota;
  /** The memory of the answers to incomplete batches. */
  readonly batches: Quota;
  readonly lane: Lane;
  readonly log: Logger;
  readonly peer: Peer | undefined;
  readonly grant: Grant | undefined;
  readonly isLocal: boolean;
}

interface BatchPlace {
  readonly answers: BatchAnswers;
  readonly place: number;
}

/** An answer that has been given. */
interface Given {
  readonly given: Answer;
}

function givenTo(give: Give, answer: Answer, { places }: Aftermath, peer: Peer | undefined): Given {
  const [place, ...others] = places;
  // The answers to a batch are given together.
  const isTogether = place !== undefined && Array.isArray(answer);
  give(answer, isTogether ? behindFrames(peer) : place);
  for (const each of isTogether ? places : others) each.fill(undefined);
  return { given: answer };
}

/** What follows when the calls of a text have ended. */
interface Aftermath {
  /** Where their answers belong. */
  readonly places: AnswerPlace[];
  /** Functions to call when the answer to the text has been given. */
  readonly answered: (() => void)[];
}

class DispatcherConversation implements Conversation {
  readonly #options: ConversationOptions;
  readonly #open = new Map<unknown, OpenCall>();
  #bytesInFlight = 0;
  #hasEnded = false;

  constructor(options: ConversationOptions) {
    this.#options = options;
  }

  receive(text: Buffer, give: Give = () => {}): Promise<Answer> {
    const { lane, calls, grant, peer } = this.#options;
    const { length } = text;
    const full = this.#refusal(length);
    if (full === undefined) {
      this.#bytesInFlight += length;
      calls.add(grant, length + callBytes);
    }
    const aftermath: Aftermath = { places: [], answered: [] };
    const begun = lane.pass(() => {
      const answer = this.#begin(text, full, aftermath);
      return answer instanceof Promise ? answer : givenTo(give, answer, aftermath, peer);
    });
    // Only the parsed value is kept until the answer: the text may be much longer.
    return this.#answer(begun, give, full === undefined ? length : undefined, aftermath);
  }

  call(method: string, params: object, signal?: AbortSignal): RpcResponse | Promise<RpcResponse> {
    return this.#options.lane.pass(() => this.#call(method, params, signal));
  }

  end(): void {
    this.#hasEnded = true;
    for (const call of this.#open.values()) call.cancel(gone());
  }

  #refusal(length: number): WireError | undefined {
    const { calls, grant, limits } = this.#options;
    if (this.#bytesInFlight > 0 && this.#bytesInFlight + length > limits.maxBytesInFlight) {
      return tooMany("bytes of calls");
    }
    return calls.refusal(grant, length + callBytes);
  }

  #begin(text: Buffer, full: WireError | undefined, aftermath: Aftermath): Promise<Answer> | Answer {
    const { log, limits } = this.#options;
    // The peer has gone, so its answer is not needed.
    if (full !== undefined && this.#hasEnded) return undefined;
    let value: unknown;
    try {
      value = parseJson(text, limits);
    } catch (error) {
      return failure(null, toWireError(error, log));
    }
    return Array.isArray(value) ? this.#batch(value, full, aftermath) : this.#one(value, full, aftermath);
  }

  /** `length`: that of the text, if it was counted. */
  async #answer(
    begun: Given | Promise<Answer | Given>,
    give: Give,
    length: number | undefined,
    aftermath: Aftermath,
  ): Promise<Answer> {
    try {
      const answer = await begun;
      if (answer !== undefined && "given" in answer) return answer.given;
      const { lane, peer } = this.#options;
      return await lane.pass(() => givenTo(give, answer, aftermath, peer).given, { isFirst: true });
    } finally {
      if (length !== undefined) {
        this.#bytesInFlight -= length;
        this.#options.calls.add(this.#options.grant, -length - callBytes);
      }
      this.#afterwards(aftermath.answered);
    }
  }

  #call(method: string, params: object, signal: AbortSignal | undefined): RpcResponse | Promise<RpcResponse> {
    const { limits, calls, grant, invoke } = this.#options;
    if (this.#open.size >= limits.maxCallsInFlight) return failure(1, tooMany("calls"));
    const full = calls.refusal(grant, callBytes);
    if (full !== undefined) return failure(1, full);
    const call = this.#opened();
    this.#open.set(call, call);
    calls.add(grant, callBytes);
    const cancel = (): void => call.cancel(cancelled());
    if (signal?.aborted === true) cancel();
    else signal?.addEventListener("abort", cancel, { once: true });
    const answered = (answer: RpcResponse): RpcResponse => {
      signal?.removeEventListener("abort", cancel);
      this.#open.delete(call);
      calls.add(grant, -callBytes);
      // The caller has it in another way.
      call.takePlace()?.fill(undefined);
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

  #opened(): OpenCall {
    const { peer, grant, isLocal } = this.#options;
    return new OpenCall(peer, grant, isLocal);
  }

  /** The answer is sent in this turn of the event loop. A function that throws does not stop the others. */
  #afterwards(answered: readonly (() => void)[]): void {
    if (answered.length === 0) return;
    setImmediate(() => {
      for (const then of answered) {
        try {
          then();
        } catch (error) {
          this.#options.log.error({ err: error }, "work after an answer failed");
        }
      }
    });
  }

  /** Starts the calls of a batch in the token's turns, and writes each answer when it arrives. */
  #batch(requests: unknown[], full: WireError | undefined, aftermath: Aftermath): Promise<Answer> | Answer {
    const { limits, batches, calls, grant, lane, log } = this.#options;
    const { maxBatchLength } = limits;
    const { length } = requests;
    if (length === 0) return failure(null, new WireError("invalid_request", "A batch must have at least one request."));
    if (length > maxBatchLength) {
      const why = `A batch may have at most ${maxBatchLength} requests.`;
      return failure(null, new WireError("invalid_request", why, { maxBatchLength }));
    }
    const answers = new BatchAnswers({ length, limits, quota: batches, grant, log });
    let counted = 0;
    const begin = (value: unknown, place: number): Promise<RpcResponse | undefined> | RpcResponse | undefined => {
      const noRoom = full ?? calls.refusal(grant, callBytes);
      if (noRoom === undefined) {
        counted += callBytes;
        calls.add(grant, callBytes);
      }
      return this.#one(value, noRoom, aftermath, { answers, place });
    };
    const write = async (place: number, answering: ReturnType<typeof begin>): Promise<void> => {
      const answer = await answering;
      if (answer !== undefined) await lane.pass(() => answers.write(place, answer), { isFirst: true });
    };
    // Releases each request when it is answered, and not with the batch.
    const written = requests.map((value, place) =>
      write(
        place,
        lane.pass(() => begin(value, place)),
      ),
    );
    requests.length = 0;
    const complete = async (): Promise<Answer> => {
      try {
        await Promise.all(written);
        return await lane.pass(() => answers.all(), { isFirst: true });
      } finally {
        calls.add(grant, -counted);
        answers.release();
      }
    };
    return complete();
  }

  #one(
    value: unknown,
    full: WireError | undefined,
    aftermath: Aftermath,
    batch?: BatchPlace,
  ): Promise<RpcResponse | undefined> | RpcResponse | undefined {
    const request = checkedRequest(value);
    if (request instanceof WireError) return failure(idOf(value), request);
    if (request === undefined) return undefined;
    const { id, method } = request;
    const refused = (error: WireError): RpcResponse | undefined => (id === undefined ? undefined : failure(id, error));
    if (method === CANCEL_METHOD) {
      this.#cancel(request.params);
      return id === undefined ? undefined : { jsonrpc: "2.0", id, result: null };
    }
    if (full !== undefined) return refused(full);
    if (this.#open.size >= this.#options.limits.maxCallsInFlight) return refused(tooMany("calls"));
    const unwanted = batch?.answers.refusal(method);
    if (unwanted !== undefined) return refused(unwanted);
    const call = this.#opened();
    batch?.answers.began(batch.place, method, call);
    return this.#answered(request, call, aftermath);
  }

  async #answered(request: JSONRPCRequest, call: OpenCall, aftermath: Aftermath): Promise<RpcResponse | undefined> {
    const { id } = request;
    // Two open calls may have the same id; only the first can be cancelled.
    const key = id === undefined || this.#open.has(id) ? call : id;
    this.#open.set(key, call);
    try {
      const answering = this.#options.server.receive(request, call);
      // A request that arrived before its peer left is started, and cancelled like the other calls.
      if (this.#hasEnded) call.cancel(gone());
      return ((await answering) as RpcResponse | null) ?? undefined;
    } finally {
      this.#open.delete(key);
      aftermath.answered.push(...call.takeAnswered());
      const place = call.takePlace();
      if (place !== undefined) aftermath.places.push(place);
    }
  }

  #cancel(params: unknown): void {
    if (typeof params !== "object" || params === null || !("id" in params)) return;
    this.#open.get(params.id)?.cancel(cancelled());
  }
}

/** The request, or why it is invalid. Undefined for a response, because the daemon sends no requests. */
function checkedRequest(value: unknown): JSONRPCRequest | WireError | undefined {
  const problem = (why: string): WireError =>
    new WireError("invalid_request", `This is not a JSON-RPC 2.0 request: ${why}.`);
  if (typeof value !== "object" || value === null || Array.isArray(value)) return problem("it is not an object");
  const { jsonrpc, method, id, params } = value as Record<string, unknown>;
  if (jsonrpc !== "2.0") return problem('jsonrpc is not "2.0"');
  if (method === undefined && ("result" in value || "error" in value)) return undefined;
  if (typeof method !== "string") return problem("method is not a string");
  if (id !== undefined && id !== null && !isWritableId(id))
    return problem("id is not a string, null, or a number that JSON can write unchanged");
  if ("result" in value || "error" in value) return problem("it has the fields of a request and of a response");
  if (params !== undefined && (typeof params !== "object" || params === null))
    return problem("params is not an object or an array");
  // Other fields are not kept until the answer.
  return { jsonrpc, method, ...(id === undefined ? {} : { id }), params };
}

function idOf(value: unknown): JSONRPCID {
  if (typeof value !== "object" || value === null || !("id" in value)) return null;
  return isWritableId(value.id) ? value.id : null;
}

/**
 * Whether JSON writes the same id again: a number out of range would be written as null, and an integer above 2^53 as
 * another one.
 */
function isWritableId(id: unknown): id is string | number {
  return typeof id === "string" || Number.isSafeInteger(id) || (Number.isFinite(id) && !Number.isInteger(id));
}

function cancelled(): WireError {
  return new WireError("cancelled", "The call was cancelled.");
}

function gone(): WireError {
  return new WireError("cancelled", "The connection has ended.");
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
