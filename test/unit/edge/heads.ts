import { token } from "../../helpers/edge.ts";

/** A request's head, without a Host header if that is undefined. */
export interface Head {
  readonly title: string;
  readonly path?: string;
  readonly host?: ((port: number) => string) | undefined;
  readonly headers?: readonly string[];
  /** Statuses for an upgrade and on the Unix socket, if these differ. */
  readonly status: number;
  readonly upgradeStatus?: number;
  readonly unixStatus?: number;
}

export const bearer = `authorization: Bearer ${token}`;
export const origin = "https://app.example:8443";

export const heads: readonly Head[] = [
  { title: "the token as Bearer", headers: [bearer], status: 200 },
  { title: "the scheme in other letters", headers: [`authorization: bEaReR ${token}`], status: 200 },
  { title: "no token", status: 401 },
  {
    title: "a wrong token of the same length",
    headers: [`authorization: Bearer ${token.replace(/.$/, "#")}`],
    status: 401,
  },
  { title: "a shorter token", headers: [`authorization: Bearer ${token.slice(0, -1)}`], status: 401 },
  { title: "a longer token", headers: [`authorization: Bearer ${token}0`], status: 401 },
  { title: "the token twice", headers: [`authorization: Bearer ${token} ${token}`], status: 401 },
  { title: "an empty token", headers: ["authorization: Bearer "], status: 401 },
  { title: "the token without a scheme", headers: [`authorization: ${token}`], status: 401 },
  { title: "the token as Basic", headers: [`authorization: Basic ${btoa(`:${token}`)}`], status: 401 },
  { title: "the token as a cookie", headers: [`cookie: token=${token}`], status: 401 },
  { title: "the token in the URL", path: `?token=${token}&access_token=${token}`, status: 401 },
  {
    title: "the token as a subprotocol",
    headers: [`sec-websocket-protocol: pi-rpcd.v1, pi-rpcd.token.${token}`],
    status: 401,
    upgradeStatus: 101,
  },
  {
    title: "the token as the only subprotocol",
    headers: [`sec-websocket-protocol: pi-rpcd.token.${token}`],
    status: 401,
    upgradeStatus: 101,
  },
  {
    title: "the token as a subprotocol, and Upgrade without the connection's word for it, or twice",
    headers: ["upgrade: websocket", `sec-websocket-protocol: pi-rpcd.token.${token}`],
    status: 401,
  },
  {
    title: "a wrong token as a subprotocol",
    headers: [`sec-websocket-protocol: pi-rpcd.v1, pi-rpcd.token.${token}0`],
    status: 401,
  },
  {
    title: "a wrong Bearer and the right subprotocol",
    headers: ["authorization: Bearer x", `sec-websocket-protocol: pi-rpcd.token.${token}`],
    status: 401,
  },
  { title: "Origin null", headers: [bearer, "origin: null"], status: 403 },
  { title: "an empty Origin", headers: [bearer, "origin:"], status: 403 },
  { title: "a foreign Origin", headers: [bearer, "origin: https://evil.example"], status: 403 },
  { title: "an Origin on a local port", headers: [bearer, "origin: http://localhost:3000"], status: 403 },
  {
    title: "an Origin that begins as an allowed one",
    headers: [bearer, `origin: ${origin}.evil.example`],
    status: 403,
  },
  { title: "an allowed Origin with another scheme", headers: [bearer, "origin: http://app.example:8443"], status: 403 },
  { title: "an allowed Origin with another port", headers: [bearer, "origin: https://app.example"], status: 403 },
  { title: "an allowed Origin", headers: [bearer, `origin: ${origin}`], status: 200 },
  { title: "an allowed Origin without a token", headers: [`origin: ${origin}`], status: 401 },
  { title: "Host localhost", host: (port) => `localhost:${port}`, headers: [bearer], status: 200 },
  { title: "Host in capitals", host: (port) => `LocalHost:${port}`, headers: [bearer], status: 200 },
  { title: "Host [::1]", host: (port) => `[::1]:${port}`, headers: [bearer], status: 200 },
  { title: "an allowed Host", host: () => "box.example:80", headers: [bearer], status: 200 },
  { title: "an allowed Host in other letters", host: () => "BOX.example:80", headers: [bearer], status: 200 },
  {
    title: "an allowed Host on another port",
    host: () => "box.example:81",
    headers: [bearer],
    status: 403,
    unixStatus: 200,
  },
  {
    title: "Host with another port",
    host: (port) => `127.0.0.1:${port + 1}`,
    headers: [bearer],
    status: 403,
    unixStatus: 200,
  },
  { title: "Host without a port", host: () => "localhost", headers: [bearer], status: 403, unixStatus: 200 },
  { title: "a foreign Host", host: (port) => `evil.example:${port}`, headers: [bearer], status: 403 },
  { title: "a Host below localhost", host: (port) => `localhost.evil.example:${port}`, headers: [bearer], status: 403 },
  { title: "Host with a trailing dot", host: (port) => `localhost.:${port}`, headers: [bearer], status: 403 },
  { title: "Host 0.0.0.0", host: (port) => `0.0.0.0:${port}`, headers: [bearer], status: 403 },
  { title: "another address of loopback as Host", host: (port) => `127.0.0.2:${port}`, headers: [bearer], status: 403 },
  { title: "Host with a user", host: (port) => `me@localhost:${port}`, headers: [bearer], status: 403 },
  { title: "an empty Host", host: () => "", headers: [bearer], status: 403 },
  {
    title: "two Hosts, a foreign one first",
    host: () => "evil.example",
    headers: [`host: localhost`, bearer],
    status: 403,
  },
  { title: "two Hosts, a foreign one last", headers: ["host: evil.example", bearer], status: 403 },
];
