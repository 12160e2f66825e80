import type { Logger } from "pino";
import { WireError } from "../../protocol/errors.ts";
import type { MethodName, Params, Result } from "../../protocol/methods.ts";
import type { RpcId, RpcResponse } from "../../protocol/wire.ts";
import { type Frame, unnumberedFrame } from "../frames/frame.ts";
import type { Peer } from "./call.ts";
import { type Conversation, type Dispatcher, defaultDispatcherLimits } from "./dispatcher.ts";
import { errorObject, toWireError } from "./errors.ts";
import type { Grant } from "./grant.ts";
import { parseJson } from "./parse.ts";
import type { Lane } from "./turns.ts";

export interface CompatOptions {
  readonly dispatcher: Dispatcher;
  readonly sessionId: string;
  readonly log: Logger;
}

/** Maximum number of open calls of one connection. */
const maxCallsInFlight = 64;
const { maxBytesInFlight } = defaultDispatcherLimits;
const longestWaitMs = 86_400_000;

/**
 * The dialect of other hosts of pi, bound to one session: `prompt`, `cancel`, `get_state`, `list_models`, and the
 * notification `event`. Each call becomes a call of this protocol to the common dispatcher.
 */
export function compatDispatcher(options: CompatOptions): Dispatcher {
  return {
    converse: (peer, grant) => new CompatConversation(options, peer, grant),
    lane: (grant) => options.dispatcher.lane(grant),
  };
}

class CompatConversation implements Conversation {
  readonly #options: CompatOptions;
  readonly #inner: Conversation;
  readonly #lane: Lane;
  /** Events must arrive before the answer that they lead to. */
  readonly #subscribed: RpcResponse | Promise<RpcResponse>;
  #prompting = false;
  #calls = 0;
  #bytesInFlight = 0;

  constructor(options: CompatOptions, peer: Peer | undefined, grant: Grant | undefined) {
    this.#options = options;
    this.#lane = options.dispatcher.lane(grant);
    this.#inner = options.dispatcher.converse(peer === undefined ? undefined : eventsOnly(peer, this.#lane), grant);
    this.#subscribed = this.#inner.call("session/subscribe", { sessionId: options.sessionId });
  }

  async receive(
    text: Buffer,
    give: (answer: RpcResponse | undefined) => void = () => {},
  ): Promise<RpcResponse | undefined> {
    const { length } = text;
    const hasRoom = this.#bytesInFlight === 0 || this.#bytesInFlight + length <= maxBytesInFlight;
    this.#bytesInFlight += length;
    const answer = await this.#receive(text, hasRoom);
    this.#bytesInFlight -= length;
    await this.#lane.pass(() => give(answer), { isFirst: true });
    return answer;
  }

  async #receive(text: Buffer, hasRoom: boolean): Promise<RpcResponse | undefined> {
    let id: RpcId | undefined = null;
    try {
      const request = parseJson(text, defaultDispatcherLimits);
      if (typeof request !== "object" || request === null || Array.isArray(request))
        throw invalidRequest("it is not an object");
      const { jsonrpc, method, params = {}, id: given } = request as Record<string, unknown>;
      if (!isId(given)) throw invalidRequest("its id is neither a string nor an integer");
      id = given;
      if (jsonrpc !== "2.0") throw invalidRequest('its jsonrpc is not "2.0"');
      if (typeof method !== "string") throw invalidRequest("it has no method");
      if (typeof params !== "object" || params === null) throw invalidRequest("its params are not an object");
      if (!hasRoom)
        throw new WireError("overloaded", "Too many bytes of calls wait for their answer.", { retryAfterMs: 1_000 });
      const result = await this.#answer(method, params as Record<string, unknown>);
      return id === undefined ? undefined : { jsonrpc: "2.0", id, result };
    } catch (error) {
      const wire = toWireError(error, this.#options.log);
      return id === undefined ? undefined : { jsonrpc: "2.0", id, error: errorObject(wire) };
    }
  }

  call(method: string, params: object, signal?: AbortSignal): RpcResponse | Promise<RpcResponse> {
    return this.#inner.call(method, params, signal);
  }

  end(): void {
    this.#inner.end();
  }

  async #answer(method: string, params: Record<string, unknown>): Promise<unknown> {
    if (this.#calls >= maxCallsInFlight)
      throw new WireError("overloaded", "Too many calls wait for their answer.", { retryAfterMs: 1_000 });
    this.#calls += 1;
    try {
      await this.#subscribed;
      switch (method) {
        case "prompt":
          return await this.#prompt(params);
        case "cancel":
          return { cancelled: (await this.#ask("session/abort", {})).aborted };
        case "get_state": {
          const [{ messages }, { model }] = await Promise.all([
            this.#ask("session/getMessages", {}),
            this.#ask("session/getState", {}),
          ]);
          return { messages, model: model ?? null };
        }
        case "list_models":
          return { models: (await this.#ask("model/list", {})).models };
        default:
          throw new WireError(
            "method_not_found",
            `There is no method ${JSON.stringify(method.slice(0, 200))} here, only prompt, cancel, get_state and list_models.`,
          );
      }
    } finally {
      this.#calls -= 1;
    }
  }

  /** Resolves when the run has ended. Only one at a time, because pi would refuse a second one later. */
  async #prompt({ message, images }: Record<string, unknown>): Promise<unknown> {
    if (typeof message !== "string" || message === "") {
      const findings = [{ path: "/message", message: "must be a non-empty string" }];
      throw new WireError("invalid_params", "prompt needs a message, a non-empty string.", { findings });
    }
    if (this.#prompting) throw new WireError("session_busy", "A prompt of this connection has not ended yet.");
    this.#prompting = true;
    try {
      const wait = { wait: "settled", timeoutMs: longestWaitMs } as const;
      // The inner call validates them.
      const given = (images === undefined ? {} : { images }) as Pick<Params<"session/prompt">, "images">;
      const { text = "", outcome } = await this.#ask("session/prompt", { text: message, ...given, ...wait });
      // A prompt that an extension's command handled starts no run that could fail.
      return { output: text, success: outcome === undefined || outcome === "settled" };
    } finally {
      this.#prompting = false;
    }
  }

  async #ask<M extends MethodName>(method: M, params: Omit<Params<M>, "sessionId">): Promise<Result<M>> {
    const answer = await this.#inner.call(method, { ...params, sessionId: this.#options.sessionId });
    if ("result" in answer) return answer.result as Result<M>;
    const { name, ...details } = answer.error.data as WireError["data"];
    throw new WireError(name, answer.error.message, details);
  }
}

/** A peer that gets only pi's events, unchanged. */
function eventsOnly(peer: Peer, lane: Lane): Peer {
  return {
    id: peer.id,
    gone: peer.gone,
    drained: () => peer.drained?.(),
    inTurn: (work) => lane.pass(work),
    send: (frame) => {
      const event = lane.count(() => eventFrame(frame));
      if (event !== undefined) peer.send(event);
    },
  };
}

/** Created once for all connections. */
const eventFrames = new WeakMap<Frame, Frame | "none">();

function eventFrame(frame: Frame): Frame | undefined {
  const known = eventFrames.get(frame);
  if (known !== undefined) return known === "none" ? undefined : known;
  const event = eventIn(frame.bytes);
  const made =
    event === undefined
      ? "none"
      : unnumberedFrame(Buffer.from(JSON.stringify({ jsonrpc: "2.0", method: "event", params: event })));
  eventFrames.set(frame, made);
  return made === "none" ? undefined : made;
}

/** pi's event. Undefined for other notifications, and for a record of pi that is not valid JSON. */
function eventIn(bytes: Buffer): unknown {
  try {
    const { method, params } = JSON.parse(bytes.toString("utf8")) as { method: string; params: { event: unknown } };
    return method === "session/event" ? params.event : undefined;
  } catch {
    return undefined;
  }
}

function isId(value: unknown): value is RpcId | undefined {
  return value === undefined || value === null || typeof value === "string" || Number.isSafeInteger(value);
}

function invalidRequest(why: string): WireError {
  return new WireError("invalid_request", `This is not a JSON-RPC 2.0 request: ${why}.`);
}
