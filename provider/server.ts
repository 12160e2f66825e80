import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { orAborted } from "./abortable.ts";
import { readBody } from "./body.ts";
import { PromptCache, type PromptCacheOptions } from "./cache/prompt-cache.ts";
import { echo } from "./echo.ts";
import { Exchange } from "./exchange.ts";
import type { LogEntry, RecordedRequest } from "./log.ts";
import { play } from "./play.ts";
import { type Admission, receive } from "./receive.ts";
import { answer, type Reply, status } from "./reply.ts";
import { RequestLog, type WaitOptions } from "./request-log.ts";
import { routeOf, routesHelp } from "./route.ts";
import { type Responder, Script, type Step } from "./script.ts";

export interface ProviderOptions {
  /** Default 127.0.0.1. */
  readonly host?: string;
  /** Default 0: any free one. */
  readonly port?: number;
  /** Replies for the next requests, one each, whatever the API. Default: none. */
  readonly script?: readonly Step[];
  /** Replies to requests that no step of the script takes. Default: {@link echo}. */
  readonly otherwise?: Responder;
  /** Refuse what real providers refuse, without using up a step. Default true. */
  readonly strict?: boolean;
  /** The models there are; others get a 404 when strict. Default: any. */
  readonly models?: readonly string[];
  /** Whether strict Anthropic requests may have `system` messages in the conversation. Default false. */
  readonly systemMessages?: boolean;
  /** Whether strict OpenAI conversations must begin with the user, as Anthropic's and Google's always do. Default false. */
  readonly userFirst?: boolean;
  /** The key that requests must carry; others get a 401 without using up a step. Default: none is asked for. */
  readonly apiKey?: string;
  /**
   * Requests for at most one token (cache warming) take a step of the `script`, or are answered `aside`, with one word.
   * pi also asks for one token when its context is full. Default `script`.
   */
  readonly warming?: "script" | "aside";
  /** Counts tokens by a vocabulary and keeps the beginnings of prompts. Default: neither; see `usage` of an answer. */
  readonly cache?: PromptCacheOptions;
  /** Larger requests get a 413. Default 64 MiB. */
  readonly maxBodyBytes?: number;
  /** The log keeps the newest. Default 10 000. */
  readonly maxLogEntries?: number;
  /** The log keeps the newest whose bodies fit. Default 256 MiB. */
  readonly maxLogBytes?: number;
}

const mebibyte = 1024 * 1024;

/** Starts a scripted provider. Rejects when it cannot listen there. */
export async function startProvider(options: ProviderOptions = {}): Promise<ScriptedProvider> {
  const server = createServer();
  // Idle connections stay: a server that closes one while the client reuses it looks like a fault.
  server.keepAliveTimeout = 0;
  server.listen(options.port ?? 0, options.host ?? "127.0.0.1");
  await once(server, "listening");
  return new ScriptedProvider(server, options);
}

/** A model provider that does what its script says, and remembers what it was asked. Made by {@link startProvider}. */
export class ScriptedProvider {
  /** `http://127.0.0.1:<port>`, and what clients of each API want as their base. */
  readonly url: string;
  readonly baseUrls: { readonly openai: string; readonly anthropic: string; readonly google: string };
  readonly apiKey: string | undefined;
  readonly #server: Server;
  readonly #log: RequestLog;
  readonly #script: Script;
  readonly #admission: Admission;
  readonly #answersWarmingAside: boolean;
  readonly #cache: PromptCache | undefined;
  readonly #answerIdPrefix = randomBytes(4).toString("hex");
  readonly #closing = new AbortController();
  readonly #serving = new Set<Promise<void>>();
  #closed: Promise<void> | undefined;

  constructor(server: Server, options: ProviderOptions) {
    const { address, family, port } = server.address() as AddressInfo;
    this.url = `http://${family === "IPv6" ? `[${address}]` : address}:${port}`;
    this.baseUrls = { openai: `${this.url}/v1`, anthropic: this.url, google: `${this.url}/v1beta` };
    this.apiKey = options.apiKey;
    this.#server = server;
    this.#log = new RequestLog({
      maxEntries: options.maxLogEntries ?? 10_000,
      maxBytes: options.maxLogBytes ?? 256 * mebibyte,
    });
    this.#script = new Script(options.script ?? [], options.otherwise ?? echo());
    this.#admission = {
      rules:
        options.strict === false
          ? undefined
          : {
              models: options.models,
              systemMessages: options.systemMessages ?? false,
              userFirst: options.userFirst ?? false,
            },
      apiKey: options.apiKey,
      maxBodyBytes: options.maxBodyBytes ?? 64 * mebibyte,
    };
    this.#answersWarmingAside = options.warming === "aside";
    this.#cache = options.cache === undefined ? undefined : new PromptCache(options.cache);
    server.on("request", (request, response) => {
      const served = this.#serve(request, response)
        .catch(() => response.destroy())
        .then(() => void this.#serving.delete(served));
      this.#serving.add(served);
    });
  }

  /** The model requests in their order, live. Requests for other paths get a 404 and are not in it. */
  get requests(): readonly LogEntry[] {
    return this.#log.entries;
  }

  /** How many of the oldest requests the log's limits have dropped. */
  get droppedRequests(): number {
    return this.#log.droppedCount;
  }

  /** Steps of the script that no request has taken yet. */
  get remainingSteps(): number {
    return this.#script.remaining;
  }

  /** Adds steps to the end of the script. */
  add(...steps: readonly Step[]): void {
    this.#script.add(steps);
  }

  /**
   * The first request that matches (default: any), of those received or of those to come. Rejects after `timeoutMs`
   * (20 000) with a list of what was received, when the signal aborts, and when the provider is closed.
   */
  waitForRequest(matches: (request: LogEntry) => boolean = () => true, options: WaitOptions = {}): Promise<LogEntry> {
    return this.#log.waitFor(matches, options);
  }

  /**
   * Ends every connection and every waiting reply at once, and rejects whoever waits for a request or for a gate of the
   * script. Resolves when the port is free. Idempotent. The log can still be read.
   */
  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #close(): Promise<void> {
    const reason = new Error("The scripted provider was closed");
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#closing.abort(reason);
    this.#script.abandon(reason);
    this.#log.close(reason);
    this.#server.close(() => resolve());
    this.#server.closeAllConnections();
    await promise;
    await Promise.all(this.#serving);
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const receivedAt = Date.now();
    response.on("error", () => {});
    const route = routeOf(request.method, request.url ?? "");
    if (route === undefined) {
      request.resume();
      response
        .writeHead(404, { "content-type": "text/plain" })
        .end(`Not found. The scripted provider answers: ${routesHelp}\n`);
      return;
    }
    const gone = new AbortController();
    response.once("close", () => gone.abort(new Error("The client closed the connection")));
    const body = await readBody(request, this.#admission.maxBodyBytes);
    const entry = this.#log.append(receive({ request, route, body, receivedAt }, this.#admission));
    const signal = AbortSignal.any([gone.signal, this.#closing.signal]);
    const exchange = new Exchange(entry, response, signal);
    try {
      if (body.kind === "cutOff") throw new Error("The request did not come whole");
      signal.throwIfAborted();
      const reply = await orAborted(this.#replyTo(entry), signal);
      const answerId = `${this.#answerIdPrefix}_${entry.n}`;
      await play(reply, { exchange, dialect: route.dialect, answerId, cache: this.#cache });
    } catch (error) {
      if (this.#closing.signal.aborted) entry.recordEnd("hung");
      else if (gone.signal.aborted || body.kind === "cutOff" || isDisconnect(error))
        entry.recordEnd("closed_by_client");
      else entry.recordFailure(error);
      response.destroy();
    }
  }

  async #replyTo(entry: RecordedRequest): Promise<Reply> {
    if (entry.refusal !== undefined) return status(entry.refusal.status, { message: entry.refusal.message });
    if (entry.isWarming && this.#answersWarmingAside) return { ...answer("."), stop: "length" };
    try {
      return await this.#script.replyTo(entry);
    } catch (error) {
      const message = `The script failed: ${String(error)}`;
      entry.recordViolation(message);
      return status(400, { message });
    }
  }
}

/** A write can fail before the response says that its connection is closed. */
function isDisconnect(error: unknown): boolean {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return code === "EPIPE" || code === "ECONNRESET";
}
