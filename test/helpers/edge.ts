import { mkdtempSync, rmSync } from "node:fs";
import { type IncomingHttpHeaders, type OutgoingHttpHeaders, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { WebSocket } from "ws";
import { WireError } from "../../protocol/errors.ts";
import type { MethodName } from "../../protocol/methods.ts";
import { createValidator } from "../../protocol/validation.ts";
import { HEALTH_PATH, WEBSOCKET_PATH } from "../../protocol/wire.ts";
import type { Transport } from "../../server/edge/admission.ts";
import { createEdge, type Edge } from "../../server/edge/app.ts";
import { EdgeLoad } from "../../server/edge/edge-load.ts";
import type { EdgeLimits } from "../../server/edge/limits.ts";
import { tlsListener } from "../../server/edge/tls.ts";
import type { Call, Handlers } from "../../server/rpc/call.ts";
import { createDispatcher, type Dispatcher, type DispatcherLimits } from "../../server/rpc/dispatcher.ts";
import type { TokenSource } from "../../server/rpc/tokens.ts";
import { soleToken } from "./tokens.ts";
import type { Unchecked } from "./unchecked.ts";

export const token = "2f8c1d-the-token-of-the-tests-91ab";
const tlsFixtures = join(import.meta.dirname, "..", "fixtures", "tls");
/** A certificate for localhost and box.example, until 2126. */
export const tlsFiles = { tlsCert: join(tlsFixtures, "cert.pem"), tlsKey: join(tlsFixtures, "key.pem") };
/** A certificate for localhost with an RSA key, of the year 2020. */
export const expiredTlsFiles = {
  tlsCert: join(tlsFixtures, "expired-rsa-cert.pem"),
  tlsKey: join(tlsFixtures, "expired-rsa-key.pem"),
};
export const deliveryId = "01920000-0000-7000-8000-000000000001";

export interface EdgeTestOptions {
  readonly limits?: Partial<EdgeLimits>;
  readonly dispatcherLimits?: Partial<DispatcherLimits>;
  readonly handlers?: Readonly<Partial<Record<MethodName, (params: unknown, call: Call) => unknown>>>;
  readonly allowedHosts?: readonly string[];
  readonly allowedOrigins?: readonly string[];
  /** Default: {@link token} alone, which allows everything. */
  readonly tokens?: TokenSource;
  /** Also listens with TLS on a free port of 127.0.0.1, with the tests' certificate or with these files. */
  readonly tls?: boolean | (typeof tlsFiles & { readonly listen?: string });
}

/** An edge on both transports, over handlers that do almost nothing. */
export interface TestEdge extends AsyncDisposable {
  readonly edge: Edge;
  readonly dispatcher: Dispatcher;
  readonly directory: string;
  readonly socketPath: string;
  readonly port: number;
  /** 0 without TLS. */
  readonly tlsPort: number;
  /** The log, one record per line. */
  readonly logged: readonly string[];
  /** The call of the next delivery/wait that begins. */
  nextWait(): Promise<Call>;
}

export interface FakeCore {
  readonly handlers: Handlers;
  nextWait(): Promise<Call>;
}

/** All handlers: those that tests need do something simple, others fail; `delivery/wait` waits for its signal. */
export function fakeCore(replaced: EdgeTestOptions["handlers"] = {}): FakeCore {
  let wait = Promise.withResolvers<Call>();
  const unused = (): never => {
    throw new Error("no test uses this method");
  };
  const handlers = {
    "session/create": unused,
    "session/get": unused,
    "session/subscribe": unused,
    "session/unsubscribe": unused,
    "session/prompt": unused,
    "session/steer": unused,
    "session/followUp": unused,
    "session/abort": unused,
    "session/command": ({ command }: { command: unknown }) => ({ data: command }),
    "session/close": unused,
    "session/clearQueue": unused,
    "delivery/push": unused,
    "delivery/list": unused,
    "delivery/cancel": unused,
    "delivery/resend": unused,
    "delivery/get": () => {
      throw new WireError("delivery_not_found", "There is no such delivery.");
    },
    "delivery/wait": async (_params: unknown, call: Call) => {
      const { signal } = call;
      const { promise, reject } = Promise.withResolvers<never>();
      signal.addEventListener("abort", () => reject(signal.reason));
      wait.resolve(call);
      wait = Promise.withResolvers<Call>();
      return await promise;
    },
    "daemon/info": () => ({ pid: 1 }),
    "session/list": () => ({ sessions: [] }),
    "rpc.discover": () => ({ openrpc: "1.3.2" }),
    ...replaced,
  };
  return { handlers: handlers as unknown as Handlers, nextWait: () => wait.promise };
}

export async function startEdge(options: EdgeTestOptions = {}): Promise<TestEdge> {
  const directory = mkdtempSync(join(tmpdir(), "edge-"));
  const logged: string[] = [];
  const log = pino({ level: "trace" }, { write: (line) => logged.push(line) });
  const { handlers, nextWait } = fakeCore(options.handlers);
  const dispatcher = createDispatcher({
    handlers,
    validator: createValidator(),
    log,
    limits: options.dispatcherLimits,
  });
  const { limits, allowedHosts, allowedOrigins, tokens = soleToken(token) } = options;
  const tls = options.tls
    ? tlsListener({ listen: "127.0.0.1:0", ...(options.tls === true ? tlsFiles : options.tls) })
    : undefined;
  const edge = createEdge({ dispatcher, tokens, log, load: new EdgeLoad(limits), allowedHosts, allowedOrigins, tls });
  const socketPath = join(directory, "s");
  const { url, tlsUrl } = await edge.listen({ socketPath, port: 0 });
  return {
    edge,
    dispatcher,
    directory,
    socketPath,
    port: Number(new URL(url).port),
    tlsPort: tlsUrl === undefined ? 0 : Number(new URL(tlsUrl).port),
    logged,
    nextWait,
    [Symbol.asyncDispose]: async () => {
      await edge.close();
      rmSync(directory, { recursive: true });
    },
  };
}

export interface HttpAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  /** The text as JSON, if it is valid. */
  readonly body: Unchecked;
}

export interface HttpQuestion {
  readonly transport?: Transport;
  readonly method?: string;
  readonly path?: string;
  readonly headers?: OutgoingHttpHeaders;
  readonly body?: string | Buffer;
}

export const authorization = { authorization: `Bearer ${token}` };
export const json = { ...authorization, "content-type": "application/json" };

/** Where an edge listens. */
export type Address = Pick<TestEdge, "port" | "socketPath">;
export type Listening = Address;

/** One HTTP request on its own socket. Resolves with any answer. */
export function http(edge: Address, question: HttpQuestion = {}): Promise<HttpAnswer> {
  const { transport = "tcp", method = "GET", path = HEALTH_PATH, headers = {}, body } = question;
  const { promise, resolve, reject } = Promise.withResolvers<HttpAnswer>();
  const where =
    transport === "tcp" ? { host: "127.0.0.1", port: edge.port } : { socketPath: edge.socketPath, host: "localhost" };
  const outgoing = request({ ...where, method, path, headers, agent: false }, (response) => {
    const chunks: Buffer[] = [];
    response.on("data", (chunk: Buffer) => chunks.push(chunk));
    response.once("error", reject);
    response.once("end", () => {
      const text = Buffer.concat(chunks).toString("utf8");
      resolve({ status: response.statusCode ?? 0, headers: response.headers, text, body: parsed(text) });
    });
  });
  outgoing.once("error", reject);
  outgoing.end(body);
  return promise;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Opens a WebSocket with a token. Rejects if the upgrade is refused. */
export function openWebSocket(
  edge: Listening,
  transport: Transport = "tcp",
  headers: Readonly<Record<string, string>> = authorization,
  path = WEBSOCKET_PATH,
): Promise<TestWebSocket> {
  const base = transport === "tcp" ? `ws://127.0.0.1:${edge.port}` : `ws+unix:${edge.socketPath}:`;
  const webSocket = new WebSocket(`${base}${path}`, { headers, perMessageDeflate: false });
  const { promise, resolve, reject } = Promise.withResolvers<TestWebSocket>();
  const opened = new TestWebSocket(webSocket);
  webSocket.once("open", () => resolve(opened));
  webSocket.once("error", reject);
  return promise;
}

export interface Closed {
  readonly code: number;
  readonly reason: string;
}

/** A client that records its messages. */
export class TestWebSocket implements AsyncDisposable {
  readonly raw: WebSocket;
  readonly closed: Promise<Closed>;
  readonly #heard: string[] = [];
  #awaited: ((text: string) => void) | undefined;

  constructor(raw: WebSocket) {
    this.raw = raw;
    const { promise, resolve } = Promise.withResolvers<Closed>();
    this.closed = promise;
    raw.on("close", (code, reason) => resolve({ code, reason: reason.toString() }));
    raw.on("error", () => {});
    raw.on("message", (data) => {
      const text = data.toString();
      if (this.#awaited === undefined) this.#heard.push(text);
      else this.#awaited(text);
      this.#awaited = undefined;
    });
  }

  send(value: unknown): void {
    this.raw.send(JSON.stringify(value));
  }

  /** The next message, parsed, past or future. */
  async next(): Promise<Unchecked> {
    const { promise, resolve } = Promise.withResolvers<string>();
    const heard = this.#heard.shift();
    if (heard === undefined) this.#awaited = resolve;
    else resolve(heard);
    return JSON.parse(await promise);
  }

  async call(method: string, params: unknown = {}, id: number | string = 1): Promise<Unchecked> {
    this.send({ jsonrpc: "2.0", id, method, params });
    return await this.next();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.raw.terminate();
    await this.closed;
  }
}

/** Whether the edge still serves: a call over HTTP and one over a WebSocket, on both transports. */
export async function isUsable(edge: TestEdge): Promise<boolean> {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "session/list" });
  for (const transport of ["tcp", "unix"] as const) {
    const answer = await http(edge, { transport, method: "POST", path: "/v1/rpc", headers: json, body });
    await using webSocket = await openWebSocket(edge, transport);
    const { result } = await webSocket.call("session/list");
    if (answer.status !== 200 || result === undefined) return false;
  }
  return true;
}
