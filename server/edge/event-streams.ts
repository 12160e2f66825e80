import type { FastifyReply } from "fastify";
import type { Logger } from "pino";
import { WireError } from "../../protocol/errors.ts";
import type { Peer } from "../rpc/call.ts";
import type { Conversation, Dispatcher } from "../rpc/dispatcher.ts";
import { Shares } from "../rpc/shares.ts";
import { grantOf } from "./admission.ts";
import type { BufferBudget } from "./buffer-budget.ts";
import { EventStream } from "./event-stream.ts";
import type { EdgeLimits } from "./limits.ts";
import type { Params } from "./request-params.ts";

export interface EventStreamsOptions {
  readonly limits: EdgeLimits;
  readonly budget: BufferBudget;
  readonly lane: Dispatcher["lane"];
  readonly log: Logger;
}

/** All streams of server-sent events, of both transports. */
export class EventStreams {
  readonly #options: EventStreamsOptions;
  readonly #streams = new Set<EventStream>();
  readonly #shares: Shares;
  readonly #beats: NodeJS.Timeout;
  readonly #stopped = Promise.withResolvers<void>();
  #stopping = false;

  constructor(options: EventStreamsOptions) {
    this.#options = options;
    const { maxEventStreams: max, maxEventStreamsPerToken: maxPerToken, namedTokensPercent } = options.limits;
    this.#shares = new Shares({ what: "streams of events", max, maxPerToken, namedTokensPercent });
    this.#beats = setInterval(() => {
      for (const stream of this.#streams) stream.beat();
    }, options.limits.pingIntervalMs).unref();
  }

  get count(): number {
    return this.#streams.size;
  }

  /** Answers a request with a stream: resolves when that has begun. Throws the error of the call, or `overloaded`. */
  async open(
    reply: FastifyReply,
    converse: (peer: Peer) => Conversation,
    method: string,
    params: Params,
  ): Promise<void> {
    const { raw: response } = reply;
    const { socket } = response;
    if (this.#stopping) throw new WireError("shutting_down", "The daemon is about to end.");
    if (socket === null) {
      throw new WireError(
        "invalid_request",
        "A stream cannot wait behind other requests: ask for it on its own socket.",
      );
    }
    const grant = grantOf(reply.request.raw);
    const full = this.#shares.refusal(grant, 1);
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
    this.#shares.add(grant, 1);
    stream.gone.addEventListener("abort", () => {
      this.#shares.add(grant, -1);
      this.#remove(stream);
    });
    const answer = await stream.call(method, params);
    if ("error" in answer) {
      stream.end("shutting_down");
      const { name, retryable: _derived, ...details } = answer.error.data as WireError["data"];
      throw new WireError(name, answer.error.message, details);
    }
    // Its client has gone meanwhile, and hears nothing of this; or the daemon is about to end.
    if (stream.gone.aborted) throw new WireError("shutting_down", "The daemon is about to end.");
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
