import { RPC_PATH, WEBSOCKET_PATH } from "../protocol/wire.ts";

/** An address of a daemon. */
export type Address =
  | { readonly kind: "unix"; readonly socketPath: string }
  | { readonly kind: "url"; readonly url: string };

/** Returns an address as text, for messages. It never contains credentials. */
export function nameOf(address: Address): string {
  if (address.kind === "unix") return address.socketPath;
  return URL.parse(address.url)?.origin ?? "an invalid URL";
}

/** Returns the WebSocket endpoint of a base URL (`http:`, `https:`, `ws:`, `wss:`). Throws a `TypeError` for other schemes. */
export function webSocketUrl(base: string, path: string = WEBSOCKET_PATH): string {
  return endpoint(base, path, { secure: "wss:", plain: "ws:" });
}

/** Returns the URL of JSON-RPC over HTTP of a base URL. */
export function rpcUrl(base: string): string {
  return endpoint(base, RPC_PATH, { secure: "https:", plain: "http:" });
}

/** Whether a URL's host is this machine's loopback interface, by name or number. */
export function isLoopback(url: string): boolean {
  const host = URL.parse(url)?.hostname;
  return host !== undefined && (host === "localhost" || host === "[::1]" || /^127(\.\d{1,3}){3}$/.test(host));
}

/** Throws a `TypeError` if a token would leave this machine unencrypted, unless the caller allows it. */
export function checkSecrecy(url: string, allowPlaintext: boolean | undefined): void {
  const parsed = URL.parse(url);
  if (allowPlaintext === true || parsed === null || isSecure(parsed) || isLoopback(url)) return;
  throw new TypeError(
    `The token would be sent to ${parsed.origin} unencrypted. Use https: or wss:, or set allowPlaintext if the network is private.`,
  );
}

/** Whether two addresses are the same; the names of the loopback interface count as one. */
export function isSameAddress(a: Address, b: Address): boolean {
  if (a.kind === "unix" || b.kind === "unix") {
    return a.kind === "unix" && b.kind === "unix" && a.socketPath === b.socketPath;
  }
  const [left, right] = [URL.parse(a.url), URL.parse(b.url)];
  if (left === null || right === null || isSecure(left) !== isSecure(right)) return false;
  const sameHost = left.hostname === right.hostname || (isLoopback(a.url) && isLoopback(b.url));
  return sameHost && left.port === right.port;
}

function endpoint(base: string, path: string, scheme: { readonly secure: string; readonly plain: string }): string {
  const url = new URL(base);
  if (!/^(https?|wss?):$/.test(url.protocol)) {
    throw new TypeError(`A daemon's URL starts with http:, https:, ws: or wss:, not with ${url.protocol}`);
  }
  const prefix = url.pathname.replace(/\/+$/, "");
  return `${isSecure(url) ? scheme.secure : scheme.plain}//${url.host}${prefix}${path}`;
}

function isSecure(url: URL): boolean {
  return url.protocol === "https:" || url.protocol === "wss:";
}
