import type { Target } from "./target.ts";

/** The head of a request that is refused on every path. */
export interface RefusedHead {
  readonly title: string;
  readonly headers: (target: Target) => readonly string[];
  readonly query?: (target: Target) => string;
  readonly status: 401 | 403;
}

const host = ({ port }: Target): string => `host: localhost:${port}`;
const bearer = ({ token }: Target): string => `authorization: Bearer ${token}`;

/** With a valid Host, and this instead of the token. */
function withToken(
  title: string,
  given: (target: Target) => readonly string[],
  query?: RefusedHead["query"],
): RefusedHead {
  return { title, headers: (target) => [host(target), ...given(target)], ...(query && { query }), status: 401 };
}

/** With a valid Host and the token, and an Origin. */
function withOrigin(title: string, origin: (target: Target) => string): RefusedHead {
  return {
    title: `the Origin ${title}`,
    headers: (target) => [host(target), bearer(target), `origin: ${origin(target)}`],
    status: 403,
  };
}

/** With the token, and these lines instead of Host. */
function withHost(title: string, hosts: (target: Target) => readonly string[]): RefusedHead {
  return { title: `the Host ${title}`, headers: (target) => [...hosts(target), bearer(target)], status: 403 };
}

export const refusedHeads: readonly RefusedHead[] = [
  withToken("no token", () => []),
  withToken("a wrong token", () => ["authorization: Bearer wrong"]),
  withToken("a token that is right but for its end", ({ token }) => [`authorization: Bearer ${token.slice(0, -1)}`]),
  withToken("the token and more", ({ token }) => [`authorization: Bearer ${token},${token}`]),
  withToken("the token in capitals", ({ token }) => [`authorization: Bearer ${token.toUpperCase()}_`]),
  withToken("no token after the scheme", () => ["authorization: Bearer"]),
  withToken("the token as Basic", ({ token }) => [`authorization: Basic ${btoa(`pi:${token}`)}`]),
  withToken("the token as Digest", ({ token }) => [`authorization: Digest ${token}`]),
  withToken("the token under the scheme Token", ({ token }) => [`authorization: Token ${token}`]),
  withToken("the token without a scheme", ({ token }) => [`authorization: ${token}`]),
  withToken("a wrong token first, the right one in a second header", (target) => [
    "authorization: Bearer wrong",
    bearer(target),
  ]),
  withToken("the token for a proxy", ({ token }) => [`proxy-authorization: Bearer ${token}`]),
  withToken("the token in headers of others", ({ token }) => [
    `x-api-key: ${token}`,
    `x-auth-token: ${token}`,
    `x-forwarded-authorization: Bearer ${token}`,
  ]),
  withToken("the token as a cookie", ({ token }) => [`cookie: token=${token}; authorization=Bearer ${token}`]),
  withToken(
    "the token in the URL",
    () => [],
    ({ token }) => `?token=${token}&access_token=${token}&authorization=Bearer%20${token}`,
  ),
  withToken(
    "the token in the fragment of the URL",
    () => [],
    ({ token }) => `#token=${token}`,
  ),
  withToken("a subprotocol whose token is wrong", () => ["sec-websocket-protocol: pi-rpcd.v1, pi-rpcd.token.wrong"]),
  withToken("a subprotocol without a token", () => ["sec-websocket-protocol: pi-rpcd.v1, pi-rpcd.token."]),
  withToken("the token as a subprotocol's whole name", ({ token }) => [`sec-websocket-protocol: ${token}`]),
  withToken("a subprotocol of another prefix", ({ token }) => [
    `sec-websocket-protocol: PI-RPCD.TOKEN.${token}, xpi-rpcd.token.${token}`,
  ]),
  withToken("a wrong token as the first subprotocol, the right one second", ({ token }) => [
    `sec-websocket-protocol: pi-rpcd.token.wrong, pi-rpcd.token.${token}`,
  ]),
  withToken("a wrong Bearer beside the right subprotocol", ({ token }) => [
    "authorization: Bearer wrong",
    `sec-websocket-protocol: pi-rpcd.v1, pi-rpcd.token.${token}`,
  ]),
  withToken("rights that the client declares", () => [
    "x-capabilities: admin",
    "x-forwarded-for: 127.0.0.1",
    "x-remote-user: root",
  ]),
  withOrigin("of a stranger", () => "https://evil.example"),
  withOrigin("of a page on another port of this machine", ({ port }) => `http://localhost:${port + 1}`),
  withOrigin("of the daemon itself, which has no page", ({ port }) => `http://localhost:${port}`),
  withOrigin("of the daemon by its address", ({ port }) => `http://127.0.0.1:${port}`),
  withOrigin("null", () => "null"),
  withOrigin("that is empty", () => ""),
  withOrigin("of a name below the allowed one", () => "https://evil.app.example:8443"),
  withOrigin("that begins as the allowed one", () => "https://app.example:8443.evil.example"),
  withOrigin("that begins as the allowed one, with a user", () => "https://app.example:8443@evil.example"),
  withOrigin("that ends as the allowed one", () => "https://evilapp.example:8443"),
  withOrigin("of the allowed one in capitals", () => "HTTPS://APP.EXAMPLE:8443"),
  withOrigin("of the allowed one on another port", () => "https://app.example"),
  withOrigin("of the allowed one by another scheme", () => "http://app.example:8443"),
  withOrigin("of the allowed one with a path", () => "https://app.example:8443/"),
  withOrigin("of the allowed one and another", () => "https://app.example:8443, https://evil.example"),
  withOrigin("of a file", () => "file://"),
  withOrigin("of an extension", () => "chrome-extension://abcdefghijklmnop"),
  withHost("of a name that was bound to this machine", ({ port }) => [`host: evil.example:${port}`]),
  withHost("below localhost", ({ port }) => [`host: localhost.evil.example:${port}`]),
  withHost("above localhost", ({ port }) => [`host: evil.localhost:${port}`]),
  withHost("with a trailing dot", ({ port }) => [`host: localhost.:${port}`]),
  withHost("0.0.0.0", ({ port }) => [`host: 0.0.0.0:${port}`]),
  withHost("127.1", ({ port }) => [`host: 127.1:${port}`]),
  withHost("as one number", ({ port }) => [`host: 2130706433:${port}`]),
  withHost("as an address of version 6 that holds one of version 4", ({ port }) => [
    `host: [::ffff:127.0.0.1]:${port}`,
  ]),
  withHost("with a user", ({ port }) => [`host: localhost:${port}@evil.example`]),
  withHost("with two names", ({ port }) => [`host: localhost:${port}, evil.example`]),
  withHost("that is empty", () => ["host:"]),
  withHost("that is missing", () => ["x: y"]),
  withHost("that is missing, with a forwarded one", ({ port }) => [`x-forwarded-host: localhost:${port}`]),
  withHost("twice, a foreign one last", (target) => [host(target), "host: evil.example"]),
  withHost("twice, a foreign one first", (target) => ["host: evil.example", host(target)]),
  withHost("twice the same", (target) => [host(target), host(target)]),
];
