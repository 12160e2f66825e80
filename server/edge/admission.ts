import type { IncomingMessage } from "node:http";
import { WireError } from "../../protocol/errors.ts";
import { HEALTH_PATH, TOKEN_SUBPROTOCOL_PREFIX } from "../../protocol/wire.ts";
import { RateWindow } from "../lib/rate-window.ts";
import type { Grant } from "../rpc/grant.ts";
import type { TokenSource } from "../rpc/tokens.ts";
import { type Refusal, refusal } from "./refusal.ts";

/** `tls` is an address beyond loopback. */
export type Transport = "tcp" | "unix" | "tls";

export interface AdmissionOptions {
  readonly tokens: TokenSource;
  /** Additional values of `Host` to accept, with the port if the header has one. */
  readonly allowedHosts: readonly string[];
  /** Web origins that may connect: scheme, host and port, compared exactly. */
  readonly allowedOrigins: readonly string[];
  readonly maxRefusedTokensPerMinute: number;
}

const loopbackNames = ["127.0.0.1", "localhost", "[::1]"];
const minuteMs = 60_000;
const secretNames = /^(?:(?:access|auth|api)?[_-]?token|tkn|bearer|authorization|api[_-]?key)$/i;

/**
 * Decides by the head of a request whether to admit it, before a body is read and before an upgrade. HTTP and WebSocket
 * have the same rules, so that neither is a way around the other.
 */
export class Admission {
  readonly #tokens: TokenSource;
  readonly #origins: ReadonlySet<string>;
  readonly #allowedHosts: readonly string[];
  readonly #hosts: Record<Transport, ReadonlySet<string>>;
  readonly #refusedTokens: RateWindow;

  constructor({ tokens, allowedHosts, allowedOrigins, maxRefusedTokensPerMinute }: AdmissionOptions) {
    this.#tokens = tokens;
    this.#origins = new Set(allowedOrigins);
    this.#allowedHosts = allowedHosts.map((host) => host.toLowerCase());
    const unix = new Set([...loopbackNames, ...this.#allowedHosts.map(withoutPort)]);
    this.#hosts = { tcp: new Set(), tls: new Set(), unix };
    this.#refusedTokens = new RateWindow({ max: maxRefusedTokensPerMinute, windowMs: minuteMs });
  }

  /** Sets the port of the daemon. Until then all requests over TCP are refused. */
  listensOn(port: number): void {
    const own = loopbackNames.flatMap((name) => (port === 80 ? [name, `${name}:80`] : [`${name}:${port}`]));
    this.#hosts.tcp = new Set([...own, ...this.#allowedHosts]);
  }

  /** Sets the port of the address beyond loopback, and the values of `Host` that name that address. */
  listensWithTls(port: number, own: readonly string[]): void {
    const loopback = loopbackNames.map((name) => `${name}:${port}`);
    this.#hosts.tls = new Set([...loopback, ...own, ...this.#allowedHosts]);
  }

  /**
   * Returns why the request is refused, or `undefined` to admit it. Only the health check needs no token. Above the rate
   * of refused tokens the result is `drop`: no answer. A correct token is admitted at any rate.
   */
  refuse(request: IncomingMessage, transport: Transport): Refusal | "drop" | undefined {
    if (!this.#knowsHost(request, transport)) {
      return refusal(
        new WireError(
          "forbidden",
          "The Host header is missing, is there twice, or names another host than this daemon's; or the path does.",
        ),
      );
    }
    const { origin } = request.headers;
    if (origin !== undefined && !this.#origins.has(origin)) {
      return refusal(
        new WireError("forbidden", "Web pages may not connect: the request has an Origin that is not allowed."),
      );
    }
    if (request.url === HEALTH_PATH && !isUpgrade(request)) return undefined;
    const token = bearer(request) ?? subprotocolToken(request);
    const isInUrl = hasSecret(request.url ?? "", token);
    const grant = token === undefined || isInUrl ? undefined : this.#tokens.find(token);
    if (grant !== undefined) {
      admit(request, grant, transport === "unix");
      return undefined;
    }
    if (!this.#refusedTokens.add(performance.now())) return "drop";
    if (isInUrl) {
      const where = "A token in a URL ends up in histories and logs";
      return refusal(
        new WireError("unauthorized", `${where}: send it as "Authorization: Bearer", and rotate this one.`),
      );
    }
    const why = token === undefined ? "The request has no token" : "The token is wrong";
    return refusal(
      new WireError(
        "unauthorized",
        `${why}. Read it from daemon.json in the state directory, and send it as "Authorization: Bearer".`,
      ),
    );
  }

  #knowsHost({ headers, rawHeaders, url }: IncomingMessage, transport: Transport): boolean {
    const { host } = headers;
    if (host === undefined || !isOneHost(rawHeaders)) return false;
    if (!this.#isOwn(host, transport)) return false;
    // A target in absolute form names a host that overrides the header (RFC 9112, section 3.2.2).
    if (url === undefined || url.startsWith("/")) return true;
    const target = /^[a-z][a-z0-9+.-]*:\/\/([^/?#]*)/i.exec(url)?.[1];
    return target === undefined || this.#isOwn(target, transport);
  }

  #isOwn(host: string, transport: Transport): boolean {
    const named = host.toLowerCase();
    return this.#hosts[transport].has(transport === "unix" ? withoutPort(named) : named);
  }
}

/** Kept on the request, because each minor garbage collection would visit every entry of a WeakMap. */
const grantKey = Symbol("grant");
const localKey = Symbol("local");

interface AdmittedRequest extends IncomingMessage {
  [grantKey]?: Grant;
  [localKey]?: boolean;
}

/** Notes the grant of a request, and whether it came over the Unix socket. */
export function admit(request: AdmittedRequest, grant: Grant, isLocal = false): void {
  request[grantKey] = grant;
  request[localKey] = isLocal;
}

/** Returns whether an admitted request came over the Unix socket. */
export function isLocal(request: IncomingMessage): boolean {
  return (request as AdmittedRequest)[localKey] === true;
}

/** Returns the grant of an admitted request. The health check has none. */
export function grantOf(request: IncomingMessage): Grant | undefined {
  return (request as AdmittedRequest)[grantKey];
}

/** Returns whether the request is for a WebSocket. Other upgrades (h2c) are offers that HTTP may ignore. */
export function isUpgrade(request: IncomingMessage): boolean {
  const { upgrade, connection } = request.headers;
  return upgrade?.toLowerCase() === "websocket" && /\bupgrade\b/i.test(connection ?? "");
}

/** Returns whether a URL contains the token, or a parameter with a name that secrets usually have. */
function hasSecret(url: string, token: string | undefined): boolean {
  if (token !== undefined && url.includes(token)) return true;
  const at = url.indexOf("?");
  return at !== -1 && [...new URLSearchParams(url.slice(at)).keys()].some((name) => secretNames.test(name));
}

export function bearer(request: IncomingMessage): string | undefined {
  return /^Bearer ([!-~]+)$/i.exec(request.headers.authorization ?? "")?.[1];
}

/** For clients that cannot set headers. Read only on upgrades, because other requests have no use for subprotocols. */
export function subprotocolToken(request: IncomingMessage): string | undefined {
  if (!isUpgrade(request)) return undefined;
  const offered = (request.headers["sec-websocket-protocol"] ?? "").split(",").map((name) => name.trim());
  return offered.find((name) => name.startsWith(TOKEN_SUBPROTOCOL_PREFIX))?.slice(TOKEN_SUBPROTOCOL_PREFIX.length);
}

/** Whether there is one Host header: Node itself joins or ignores repeated headers. */
export function isOneHost(rawHeaders: readonly string[]): boolean {
  let hosts = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] as string;
    if (name.length === 4 && name.toLowerCase() === "host") hosts += 1;
  }
  return hosts === 1;
}

function withoutPort(host: string): string {
  return host.replace(/:\d+$/, "");
}
