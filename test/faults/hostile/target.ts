import { once } from "node:events";
import { WebSocket } from "ws";
import { RPC_PATH, WEBSOCKET_PATH } from "../../../protocol/wire.ts";
import type { DaemonOptions } from "../../../server/daemon.ts";
import type { Transport } from "../../../server/edge/admission.ts";
import type { EdgeLimits } from "../../../server/edge/limits.ts";
import { DaemonProcess } from "../../helpers/daemon-process.ts";
import { type HttpAnswer, type HttpQuestion, http, TestWebSocket } from "../../helpers/edge.ts";
import { type RawSocket, rawSocket } from "../../unit/edge/raw-socket.ts";

export const transports = ["tcp", "unix"] as const;

/** A time limit for steps without a natural limit, in milliseconds. */

/** The call that a well-behaved client repeats. */
export const goodCall = '{"jsonrpc":"2.0","id":"good","method":"daemon/info"}';

/** An attacked daemon in a separate process, with a well-behaved client. */
export class Target implements AsyncDisposable {
  readonly port: number;
  readonly socketPath: string;
  readonly token: string;
  readonly #daemon: DaemonProcess;
  readonly #good: TestWebSocket;
  #before = 0;
  #latencies: number[] = [];

  private constructor(daemon: DaemonProcess, good: TestWebSocket) {
    const { url, socketPath, token } = daemon.file;
    this.port = Number(new URL(url).port);
    this.socketPath = socketPath;
    this.token = token;
    this.#daemon = daemon;
    this.#good = good;
  }

  static async start(
    limits: Partial<EdgeLimits> = {},
    more: Pick<DaemonOptions, "allowedOrigins"> = {},
  ): Promise<Target> {
    const daemon = await DaemonProcess.start(limits, more);
    const { url, socketPath, token } = daemon.file;
    const target = new Target(daemon, await open({ port: Number(new URL(url).port), socketPath, token }, "unix"));
    // Code that is loaded and compiled once does not count as growth.
    for (const transport of transports) {
      await target.post(transport, goodCall);
      await target.post(transport, "[");
      await target.http({ transport, method: "GET", path: "/v1/sessions", headers: target.authorization });
      await using webSocket = await target.webSocket(transport);
      await webSocket.call("session/get", { sessionId: "nobody" });
    }
    await target.isUsable();
    await target.settle();
    return target;
  }

  get authorization(): { readonly authorization: string } {
    return { authorization: `Bearer ${this.token}` };
  }

  http(question: HttpQuestion): Promise<HttpAnswer> {
    return http(this, question);
  }

  /** A body for JSON-RPC. */
  post(transport: Transport, body: Buffer | string): Promise<HttpAnswer> {
    const headers = { ...this.authorization, "content-type": "application/json" };
    return this.http({ transport, method: "POST", path: RPC_PATH, headers, body });
  }

  webSocket(transport: Transport = "tcp"): Promise<TestWebSocket> {
    return open(this, transport);
  }

  raw(transport: Transport = "tcp"): RawSocket {
    return rawSocket(this, transport);
  }

  /** A bare socket after the upgrade to a WebSocket. */
  async rawWebSocket(transport: Transport = "tcp", headers: readonly string[] = []): Promise<RawSocket> {
    const raw = this.raw(transport);
    raw.socket.write(this.upgradeHead(headers));
    await raw.until((text) => text.includes("\r\n\r\n"));
    return raw;
  }

  /** A request's head up to its end, with a Host and the token. */
  head(line: string, headers: readonly string[] = []): string {
    const own = [`host: localhost:${this.port}`, `authorization: Bearer ${this.token}`];
    return `${[`${line} HTTP/1.1`, ...own, ...headers].join("\r\n")}\r\n\r\n`;
  }

  upgradeHead(headers: readonly string[] = []): string {
    return this.head(`GET ${WEBSOCKET_PATH}`, [...upgradeHeaders, ...headers]);
  }

  /** Whether the well-behaved client still gets answers: over its own connection, and over a new request. */
  async isUsable(): Promise<boolean> {
    const began = performance.now();
    const answer = await this.#good.call("daemon/info");
    this.#latencies.push(performance.now() - began);
    const { body } = await this.post("tcp", goodCall);
    return answer.result !== undefined && body?.result !== undefined;
  }

  /** The median duration of its calls over its connection since the last call of this method, in milliseconds. */
  latency(): number {
    const sorted = this.#latencies.sort((a, b) => a - b);
    this.#latencies = [];
    return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
  }

  /** How many WebSocket connections the daemon has, including the well-behaved client's. */
  async connections(): Promise<number> {
    return (await this.#good.call("daemon/info")).result.connections;
  }

  /** The daemon's memory in bytes after garbage collection. */
  async memory(): Promise<number> {
    const { heapUsed, external } = await this.#daemon.memory();
    return heapUsed + external;
  }

  /** Growth is measured from here on. */
  async settle(): Promise<void> {
    await this.memory();
    this.#before = await this.memory();
  }

  /** Its memory now, relative to its memory at the start. */
  async growth(): Promise<number> {
    return (await this.memory()) / this.#before;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#good[Symbol.asyncDispose]();
    await this.#daemon[Symbol.asyncDispose]();
  }
}

export const upgradeHeaders: readonly string[] = [
  "connection: Upgrade",
  "upgrade: websocket",
  "sec-websocket-version: 13",
  "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==",
];

async function open(
  { port, socketPath, token }: Pick<Target, "port" | "socketPath" | "token">,
  transport: Transport,
): Promise<TestWebSocket> {
  const base = transport === "tcp" ? `ws://127.0.0.1:${port}` : `ws+unix:${socketPath}:`;
  const headers = { authorization: `Bearer ${token}`, host: `localhost:${port}` };
  const raw = new WebSocket(`${base}${WEBSOCKET_PATH}`, { headers, perMessageDeflate: false });
  const opened = new TestWebSocket(raw);
  await once(raw, "open");
  return opened;
}
