import { createHash, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { WireError } from "../../protocol/errors.ts";
import { TOKEN_SUBPROTOCOL_PREFIX } from "../../protocol/wire.ts";

export type Transport = "tcp" | "unix";

export interface AdmissionOptions {
  readonly token: string;
  /** Further host names (with port, if any) that a request may name. */
  readonly allowedHosts: readonly string[];
  /** Web origins that may connect: scheme, host and port, compared exactly. */
  readonly allowedOrigins: readonly string[];
  readonly maxRefusedTokensPerMinute: number;
}

const loopbackNames = ["127.0.0.1", "localhost", "[::1]"];
const minuteMs = 60_000;

/**
 * Decides who may come in, from the head of a request alone: before any body is read and before any upgrade. The same
 * for HTTP and WebSocket, so that neither is a way around the other.
 */
export class Admission {
  readonly #options: AdmissionOptions;
  readonly #digest: Buffer;
  readonly #origins: ReadonlySet<string>;
  #tcpHosts: ReadonlySet<string> = new Set();
  #refusals: number[] = [];

  constructor(options: AdmissionOptions) {
    this.#options = options;
    this.#digest = sha256(options.token);
    this.#origins = new Set(options.allowedOrigins);
  }

  /** The port is known once the daemon listens. */
  listensOn(port: number): void {
    const own = loopbackNames.map((name) => `${name}:${port}`);
    this.#tcpHosts = new Set([...own, ...this.#options.allowedHosts.map((host) => host.toLowerCase())]);
  }

  /** What speaks against the request; `undefined` lets it in. A web page fails here even where no token is asked. */
  refuseForeign(request: IncomingMessage, transport: Transport): WireError | undefined {
    const host = request.headers.host?.toLowerCase();
    if (host === undefined || !this.#knowsHost(host, transport)) {
      return new WireError("forbidden", "The Host header names another host than this daemon's.");
    }
    const { origin } = request.headers;
    if (origin !== undefined && !this.#origins.has(origin)) {
      return new WireError("forbidden", "Web pages may not connect: the request has an Origin that is not allowed.");
    }
    return undefined;
  }

  /** The same, and the token. */
  refuse(request: IncomingMessage, transport: Transport): WireError | undefined {
    const foreign = this.refuseForeign(request, transport);
    if (foreign !== undefined) return foreign;
    const token = bearer(request) ?? subprotocolToken(request);
    if (token !== undefined && timingSafeEqual(sha256(token), this.#digest)) return undefined;
    this.#refusals.push(Date.now());
    const why = token === undefined ? "The request has no token" : "The token is wrong";
    return new WireError("unauthorized", `${why}. It stands in daemon.json in the state directory; send it as "Authorization: Bearer".`);
  }

  /** Whether so many tokens were refused that further ones get no answer. */
  get overrun(): boolean {
    const since = Date.now() - minuteMs;
    this.#refusals = this.#refusals.filter((at) => at > since);
    return this.#refusals.length > this.#options.maxRefusedTokensPerMinute;
  }

  #knowsHost(host: string, transport: Transport): boolean {
    if (transport === "tcp") return this.#tcpHosts.has(host);
    const name = host.replace(/:\d+$/, "");
    return loopbackNames.includes(name) || this.#options.allowedHosts.includes(host);
  }
}

function bearer(request: IncomingMessage): string | undefined {
  return /^Bearer ([!-~]+)$/i.exec(request.headers.authorization ?? "")?.[1];
}

/** For clients that cannot set headers. Read on upgrades alone: other requests have no business with the header. */
function subprotocolToken(request: IncomingMessage): string | undefined {
  if (request.headers.upgrade === undefined) return undefined;
  const offered = (request.headers["sec-websocket-protocol"] ?? "").split(",").map((name) => name.trim());
  return offered.find((name) => name.startsWith(TOKEN_SUBPROTOCOL_PREFIX))?.slice(TOKEN_SUBPROTOCOL_PREFIX.length);
}

function sha256(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
