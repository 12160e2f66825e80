import type { FastifyReply } from "fastify";
import type { Logger } from "pino";
import { WireError } from "../../protocol/errors.ts";
import type { Peer } from "../rpc/call.ts";
import type { Conversation, Dispatcher } from "../rpc/dispatcher.ts";
import type { Quota } from "../rpc/quota.ts";
import { grantOf } from "./admission.ts";
import type { BufferBudget } from "./buffer-budget.ts";
import { EventStream } from "./event-stream.ts";
import type { EdgeLimits } from "./limits.ts";
import { wireErrorOf } from "./refusal.ts";
import type { Params } from "./request-params.ts";

export interface EventStreamsOptions {
  readonly limits: EdgeLimits;
  /** How many streams there may be. */
  readonly quota: Quota;
  /** The frames that wait for all connections. */
  readonly budget: BufferBudget;
  readonly lane: Dispatcher["lane"];
  readonly log: Logger;
}

/** The streams of server-sent events of all transports. */
export class EventStreams {
  readonly #options: EventStreamsOptions;
  readonly #streams = new Set<EventStream>();
  readonly #beats: NodeJS.Timeout;
  readonly #stopped = Promise.withResolvers<void>();
  #stopping = false;

  constructor(options: EventStreamsOptions) {
    this.#options = options;
    this.#beats = setInterval(() => {
      for (const stream of this.#streams) stream.beat();
    }, options.limits.pingIntervalMs).unref();
  }

  /** Answers a request with a stream; resolves when it has started. Rejects with the error of the call, or `overloaded`. */
  async open(
    reply: FastifyReply,
    converse: (peer: Peer) => Conversation,
    method: string,
    params: Params,
  ): Promise<void> {
    const { quota } = this.#options;
    const { raw: response } = reply;
    const { socket } = response;
    if (this.#stopping) throw new WireError("shutting_down", "The daemon is shutting down.");
    if (socket === null) {
      throw new WireError(
        "invalid_request",
        "A stream cannot follow other requests on a socket: request it on a socket of its own.",
      );
    }
    const grant = grantOf(reply.request.raw);
    const full = quota.refusal(grant, 1);
    if (full !== undefined) throw full;
    const stream = new EventStream({
      ...this.#options,
      grant,
      lane: this.#options.lane(grant),
      converse,
      response,
      socket,
    });
    this.#streams.add(stream);
    quota.add(grant, 1);
    stream.gone.addEventListener("abort", () => {
      quota.add(grant, -1);
      this.#remove(stream);
    });
    const answer = await stream.call(method, params);
    if ("error" in answer) {
      stream.end("shutting_down");
      throw wireErrorOf(answer.error);
    }
    // Either the client has left, and this error reaches no one, or the daemon is shutting down.
    if (stream.gone.aborted) throw new WireError("shutting_down", "The daemon is shutting down.");
    reply.hijack();
    stream.open(answer.result as Readonly<Record<string, unknown>>, params["after"] !== undefined);
  }

  /** Ends all streams. Resolves when the last has gone. */
  stop(): Promise<void> {
    this.#stopping = true;
    clearInterval(this.#beats);
    for (const stream of this.#streams) stream.end("shutting_down");
    if (this.#streams.size === 0) this.#stopped.resolve();
    return this.#stopped.promise;
  }

  #remove(stream: EventStream): void {
    this.#streams.delete(stream);
    if (this.#stopping && this.#streams.size === 0) this.#stopped.resolve();
  }
}
