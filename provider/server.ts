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
import { MessageThreads } from "./threads.ts";

export interface ProviderOptions {
  /** Default 127.0.0.1. */
  readonly host?: string;
  /** Default 0: any free port. */
  readonly port?: number;
  /** Replies for the next requests, one each, for every API. Default: none. */
  readonly script?: readonly Step[];
  /** Replies to requests that no step of the script takes. Default: {@link echo}. */
  readonly otherwise?: Responder;
  /** Refuses what real providers refuse, without using up a step. Default true. */
  readonly strict?: boolean;
  /** The known models; requests for others get a 404 in strict mode. Default: any. */
  readonly models?: readonly string[];
  /** Whether strict Anthropic requests may have `system` messages in the conversation. Default false. */
  readonly systemMessages?: boolean;
  /**
   * Whether strict OpenAI conversations must begin with the user, as Anthropic's and Google's always must. Default
   * false.
   */
  readonly userFirst?: boolean;
  /** The key that requests must have; other requests get a 401 without using up a step. Default: no key is required. */
  readonly apiKey?: string;
  /**
   * Requests for at most one token (cache warming) take a step of the `script`, or are answered `aside`, with one word.
   * pi also asks for one token when its context is full. Default `script`.
   */
  readonly warming?: "script" | "aside";
  /** Counts tokens with a vocabulary and caches prompt prefixes. Default: neither; see `usage` of an answer. */
  readonly cache?: PromptCacheOptions;
  /** Larger requests get a 413. Default 64 MiB. */
  readonly maxBodyBytes?: number;
  /** The maximum of log entries; the newest are kept. Default 10 000. */
  readonly maxLogEntries?: number;
  /** The maximum of bytes of bodies in the log; the newest are kept. Default 256 MiB. */
  readonly maxLogBytes?: number;
}

const mebibyte = 1024 * 1024;

/** Starts a scripted provider. Rejects if it cannot listen there. */
export async function startProvider(options: ProviderOptions = {}): Promise<ScriptedProvider> {
  const server = createServer();
  // Idle connections are kept: closing one while the client reuses it would look like a fault.
  server.keepAliveTimeout = 0;
  server.listen(options.port ?? 0, options.host ?? "127.0.0.1");
  await once(server, "listening");
  return new ScriptedProvider(server, options);
}

/** A model provider that follows its script and records its requests. Created by {@link startProvider}. */
export class ScriptedProvider {
  /** `http://127.0.0.1:<port>`, and the base URLs that clients of each API need. */
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
      threads: new MessageThreads(),
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

  /** The model requests in their order, live. Requests for other paths get a 404 and are not included. */
  get requests(): readonly LogEntry[] {
    return this.#log.entries;
  }

  /** How many of the oldest requests the log has dropped. */
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
   * The first request that matches (default: any), among earlier and later ones. Rejects after `timeoutMs` (200,000)
   * with a list of the received requests, when the signal aborts, and when the provider is closed.
   */
  waitForRequest(matches: (request: LogEntry) => boolean = () => true, options: WaitOptions = {}): Promise<LogEntry> {
    return this.#log.waitFor(matches, options);
  }

  /**
   * Ends every connection and every waiting reply at once, and rejects all waits for a request or for a gate of the
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
      if (body.kind === "cutOff") throw new Error("The request body is incomplete");
      signal.throwIfAborted();
      const reply = await orAborted(this.#replyTo(entry), signal);
      const answerId = `${this.#answerIdPrefix}_${entry.n}`;
      const { threads } = this.#admission;
      await play(reply, { exchange, dialect: route.dialect, answerId, cache: this.#cache, threads });
    } catch (error) {
      if (this.#closing.signal.aborted) entry.recordEnd("hung");
      else if (gone.signal.aborted || body.kind === "cutOff" || isDisconnect(error))
        entry.recordEnd("closed_by_client");
      else entry.recordFailure(error);
      response.destroy();
    }
  }

  async #replyTo(entry: RecordedRequest): Promise<Reply> {
    if (entry.refusal !== undefined) {
      const { status: code, ...error } = entry.refusal;
      return status(code, error);
    }
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

/** A write can fail before the response reports that its connection is closed. */
function isDisconnect(error: unknown): boolean {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return code === "EPIPE" || code === "ECONNRESET";
}
