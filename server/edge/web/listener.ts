import type { IncomingMessage, ServerResponse } from "node:http";
import type { Logger } from "pino";
import type { Capability } from "../../../protocol/capability.ts";
import { WireError } from "../../../protocol/errors.ts";
import { isRecord } from "../../../protocol/objects.ts";
import { WEBSOCKET_SUBPROTOCOL } from "../../../protocol/wire.ts";
import { within } from "../../lib/deadline.ts";
import { StartError } from "../../lib/start-error.ts";
import type { Dispatcher } from "../../rpc/dispatcher.ts";
import type { WebTokens } from "../../rpc/web-tokens.ts";
import { grantOf } from "../admission.ts";
import type { EdgeLoad } from "../edge-load.ts";
import { listenTcp } from "../listen.ts";
import {
  httpRefusal,
  type Refusal,
  refusal,
  refuseBeforeBody,
  refuseBody,
  refuseRequest,
  tooLarge,
} from "../refusal.ts";
import { TransportServer } from "../transport-server.ts";
import { WebSockets } from "../web-sockets.ts";
import { exchangePath, WebAdmission } from "./admission.ts";
import { Codes } from "./codes.ts";
import type { WebFiles } from "./files.ts";

export interface WebListenerOptions {
  readonly dispatcher: Dispatcher;
  readonly version: string;
  readonly load: EdgeLoad;
  readonly tokens: WebTokens;
  readonly limits: { readonly maxWebCodes: number; readonly maxExchangeBytes: number };
  /** Names this process of the daemon. */
  readonly instance: string;
  /** The page's title. */
  readonly title: string;
  /** Whether single letters are commands in the page. */
  readonly letterKeys: boolean;
  /** Called when there is neither a token nor a code. Calling {@link WebListener.addCode} may follow. */
  readonly onIdle: () => void;
  readonly log: Logger;
}

/** The token that a code is for. */
export interface CodeFor {
  readonly tokenName: string;
  readonly capabilities: readonly Capability[];
}

const signOutPath = "/sign-out";
const webSocketPath = "/ws";

/** Holds in Chromium 156 and Firefox 153. Without 'self' for images the page's icon is blocked and reported. */
const contentSecurityPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' blob:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join("; ");

const headers = {
  "content-security-policy": contentSecurityPolicy,
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  "cache-control": "no-store",
} as const;

/** The web console's own listener on 127.0.0.1: files, the exchange of codes for tokens, and a WebSocket. */
export class WebListener {
  readonly #options: WebListenerOptions;
  readonly #admission: WebAdmission;
  readonly #codes: Codes<CodeFor>;
  readonly #webSockets: WebSockets;
  readonly #server: TransportServer;
  readonly #forget: () => void;
  #files: WebFiles = new Map();

  private constructor(options: WebListenerOptions) {
    this.#options = options;
    const { dispatcher, version, load, tokens, onIdle, log } = options;
    const { limits, quotas, buffers } = load;
    this.#admission = new WebAdmission({ tokens, maxRefusedTokensPerMinute: limits.maxRefusedTokensPerMinute });
    this.#codes = new Codes({ ...options.limits, onEmpty: onIdle });
    this.#webSockets = new WebSockets({
      dispatcher,
      version,
      limits,
      quotas,
      budget: buffers,
      endpointOf: ({ url }) =>
        url === webSocketPath ? { kind: "own", subprotocol: WEBSOCKET_SUBPROTOCOL } : undefined,
      onConnection: (grant, change) => tokens.connected(grant, change),
      log,
    });
    this.#server = new TransportServer({
      transport: "web",
      refuse: (request) => this.#admission.refuse(request),
      // Reading the files needs no token.
      limits: { ...limits, tokenTimeoutMs: limits.requestTimeoutMs },
      log,
      onRequest: (request, response, goOn) => this.#request(request, response, goOn),
      onUpgrade: (request, socket, head) => this.#webSockets.upgrade(request, socket, head),
    });
    this.#forget = tokens.onEnded((grant) => {
      this.#webSockets.tokenEnded(grant);
      this.#server.tokenEnded(grant);
      onIdle();
    });
  }

  /** Port 0 lets the system choose. Throws `port_unavailable`. */
  static async open(port: number, options: WebListenerOptions): Promise<WebListener> {
    const listener = new WebListener(options);
    try {
      listener.#admission.listensOn(await listenTcp(listener.#server.http, port));
    } catch (cause) {
      await listener.stop();
      if (!(cause instanceof StartError)) throw cause;
      const why = cause.kind === "port_in_use" ? "another program listens on it" : "the system does not allow it";
      const advice = "Choose another port, or none to let the system choose.";
      throw new WireError("port_unavailable", `Port ${port} cannot be used: ${why}. ${advice}`, { port }, { cause });
    }
    return listener;
  }

  get port(): number {
    return this.#admission.port;
  }

  get url(): string {
    return `${this.#admission.origin}/`;
  }

  get isIdle(): boolean {
    return this.#codes.size === 0 && this.#options.tokens.size === 0;
  }

  /** Serves these files instead of the former ones. */
  serve(files: WebFiles): void {
    this.#files = files;
  }

  /** Returns a code for a token. Throws `overloaded`. */
  addCode(token: CodeFor, ttlMs: number): string {
    return this.#codes.create(token, ttlMs);
  }

  /**
   * Ends codes and tokens, listens no more, and closes what is open. Its WebSockets are closed with 4401, or with 1001 or
   * 1012 if the daemon ends.
   */
  async stop(daemonEnds?: "stopped" | "restarting"): Promise<void> {
    const { limits } = this.#options.load;
    this.#codes.clear();
    if (daemonEnds === undefined) this.#options.tokens.endAll();
    const all = Promise.all([this.#server.stop(), this.#webSockets.stop(daemonEnds === "restarting")]);
    const ended = await within(all, limits.closeTimeoutMs);
    if (ended.kind === "timeout") this.#server.destroy();
    await all;
    this.#options.tokens.endAll();
    this.#forget();
  }

  #request(request: IncomingMessage, response: ServerResponse, goOn: (() => void) | undefined): void {
    for (const [name, text] of Object.entries(headers)) response.setHeader(name, text);
    const refused = this.#refusal(request);
    if (refused !== undefined) {
      if (goOn === undefined) this.#refuse(response, refused);
      else refuseBeforeBody(response, refused);
      return;
    }
    goOn?.();
    if (request.url === exchangePath) void this.#exchange(request, response);
    else if (request.url === signOutPath) this.#signOut(request, response);
    else this.#send(request, response);
  }

  #refusal(request: IncomingMessage): Refusal | undefined {
    const { url = "", method } = request;
    const isPost = url === exchangePath || url === signOutPath;
    const allowed = isPost ? "POST" : url === webSocketPath ? undefined : "GET, HEAD";
    if (allowed === undefined) return httpRefusal(426, "This path takes WebSocket upgrades.", { upgrade: "websocket" });
    // Compared as a whole: nothing here reads a query.
    if (!isPost && !this.#files.has(url)) return httpRefusal(404, "There is nothing at this path.");
    if (!allowed.split(", ").includes(method ?? ""))
      return httpRefusal(405, `This path takes ${allowed}.`, { allow: allowed });
    const type = request.headers["content-type"]?.split(";", 1)[0]?.trim().toLowerCase();
    if (url === exchangePath && type !== "application/json")
      return httpRefusal(415, "The body must be application/json.");
    return refuseBody(request, this.#options.limits.maxExchangeBytes);
  }

  #send({ url = "", method }: IncomingMessage, response: ServerResponse): void {
    const file = this.#files.get(url);
    if (file === undefined) return;
    response.writeHead(200, { "content-type": file.type, "content-length": String(file.body.length) });
    response.end(method === "HEAD" ? undefined : file.body);
  }

  /** Exchanges a code for a token. */
  async #exchange(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { tokens, instance, title, letterKeys, log } = this.#options;
    const { maxExchangeBytes } = this.#options.limits;
    try {
      const body = await bodyOf(request, maxExchangeBytes);
      if (body === undefined) {
        this.#refuse(response, tooLarge(maxExchangeBytes));
        return;
      }
      const code = codeIn(body);
      const taken = code === undefined ? undefined : this.#codes.take(code);
      if (taken === undefined) {
        const refused = this.#admission.refuseSecret("The code is wrong, was used before, or is too old");
        if (refused === "drop") request.socket.destroy();
        else this.#refuse(response, refused);
        return;
      }
      const { tokenName, capabilities } = taken.value;
      const token = tokens.create(tokenName, capabilities);
      log.info({ tokenName }, "a browser has signed in to the web console");
      answer(response, { token, instance, title, letterKeys });
    } catch (error) {
      // Without an error of ours the peer has gone.
      if (error instanceof WireError) this.#refuse(response, refusal(error));
      else response.destroy();
    }
  }

  #signOut(request: IncomingMessage, response: ServerResponse): void {
    const grant = grantOf(request);
    answer(response, {});
    if (grant !== undefined) this.#options.tokens.end(grant.name);
  }

  #refuse(response: ServerResponse, refused: Refusal): void {
    refuseRequest(response, refused, this.#options.load.limits);
  }
}

function answer(response: ServerResponse, result: object): void {
  const text = JSON.stringify(result);
  response.writeHead(200, { "content-type": "application/json", "content-length": String(Buffer.byteLength(text)) });
  response.end(text);
}

/** Undefined: it is longer. */
async function bodyOf(request: IncomingMessage, maxBytes: number): Promise<string | undefined> {
  const parts: Buffer[] = [];
  let bytes = 0;
  // The answer needs the socket.
  for await (const part of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    bytes += part.length;
    if (bytes > maxBytes) return undefined;
    parts.push(part);
  }
  return Buffer.concat(parts).toString("utf8");
}

/** Undefined: there is none. */
function codeIn(body: string): string | undefined {
  try {
    const given: unknown = JSON.parse(body);
    return isRecord(given) && typeof given["code"] === "string" ? given["code"] : undefined;
  } catch {
    return undefined;
  }
}
