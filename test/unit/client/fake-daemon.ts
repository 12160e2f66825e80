import { once } from "node:events";
import { closeSync, mkdtempSync, openSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import { type WebSocket, WebSocketServer } from "ws";
import type { Client } from "../../../client/client.ts";
import { type ConnectOptions, connect } from "../../../client/connect.ts";
import type { DaemonFile } from "../../../protocol/daemon-file.ts";
import { WireError } from "../../../protocol/errors.ts";
import type { MethodName, Params, Result } from "../../../protocol/methods.ts";
import type { NotificationName, NotificationParams } from "../../../protocol/notifications.ts";
import { TOKEN_SUBPROTOCOL_PREFIX, WEBSOCKET_SUBPROTOCOL } from "../../../protocol/wire.ts";
import { daemonInfo } from "./fixtures.ts";

/** One request as it arrived. */
export interface SeenCall {
  readonly method: string;
  readonly params: Record<string, unknown>;
  readonly id: unknown;
  readonly socket: WebSocket | undefined;
  /** Done right after the answer, for example a replay. */
  readonly afterwards: (() => void)[];
}

/** An answer that never comes. */
export const noAnswer: unique symbol = Symbol("no answer");

type Canned<M extends MethodName> = (
  params: Params<M>,
  call: SeenCall,
) => Result<M> | Promise<Result<M>> | typeof noAnswer;

/** A daemon's edge with canned answers: a Unix socket and a TCP port, WebSocket and HTTP. */
export class FakeDaemon implements AsyncDisposable {
  readonly stateDir = mkdtempSync(join(tmpdir(), "fake-"));
  readonly socketPath: string;
  /** The lock file, which every daemon keeps open. */
  readonly #lock = openSync(join(this.stateDir, "lock.db"), "a");
  token = "token-1";
  /** All but the client's greeting: the first of each socket, if it is a `daemon/info`, and its `daemon/hello`. */
  readonly calls: SeenCall[] = [];
  readonly sockets = new Set<WebSocket>();
  readonly handshakes: IncomingMessage[] = [];
  /** Answers handshakes and posts instead of the daemon when it returns a status. */
  refuse: (() => { readonly status: number; readonly body: string } | undefined) | undefined;
  readonly #answers = new Map<string, (params: never, call: SeenCall) => unknown>();
  readonly #waiting = new Set<() => void>();
  readonly #unix: Server;
  readonly #tcp: Server;

  private constructor(socketName: string) {
    this.socketPath = join(this.stateDir, socketName);
    const webSockets = new WebSocketServer({
      noServer: true,
      handleProtocols: (offered) => (offered.has(WEBSOCKET_SUBPROTOCOL) ? WEBSOCKET_SUBPROTOCOL : false),
    });
    const server = (): Server =>
      createServer(
        (request, response) =>
          void this.#onPost(request).then(({ status, body }) => response.writeHead(status).end(body)),
      ).on("upgrade", (request: IncomingMessage, socket: Duplex, head: Buffer) => {
        this.handshakes.push(request);
        const refused = this.#refusal(request);
        if (refused !== undefined) {
          socket.end(
            `HTTP/1.1 ${refused.status} No\r\ncontent-length: ${refused.body.length}\r\nconnection: close\r\n\r\n${refused.body}`,
          );
          return;
        }
        webSockets.handleUpgrade(request, socket, head, (webSocket) => this.#onSocket(webSocket));
      });
    this.#unix = server();
    this.#tcp = server();
    this.answer("daemon/info", () => daemonInfo());
    this.answer("daemon/hello", ({ client }) => ({ clientId: client.id ?? "client-0" }));
  }

  static async start(options: { readonly socketName?: string } = {}): Promise<FakeDaemon> {
    const daemon = new FakeDaemon(options.socketName ?? "daemon.sock");
    daemon.#unix.listen(daemon.socketPath);
    daemon.#tcp.listen(0, "127.0.0.1");
    await Promise.all([once(daemon.#unix, "listening"), once(daemon.#tcp, "listening")]);
    daemon.writeFile();
    return daemon;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#tcp.address() as AddressInfo).port}`;
  }

  /** Writes daemon.json, correct except for the given fields. */
  writeFile(changes: Partial<Record<keyof DaemonFile, unknown>> = {}): void {
    const { url, socketPath, token } = this;
    const file = { pid: process.pid, version: "0.1.0", protocol: 1, url, socketPath, token, ...changes };
    writeFileSync(join(this.stateDir, "daemon.json"), JSON.stringify(file));
  }

  answer<M extends MethodName>(method: M, answer: Canned<M>): void {
    this.#answers.set(method, answer as (params: never, call: SeenCall) => unknown);
  }

  /** A client of this daemon that validates everything it receives. */
  connect(options: ConnectOptions = {}): Promise<Client> {
    return connect({ stateDir: this.stateDir, validateResults: true, ...options });
  }

  seen(method: string): readonly SeenCall[] {
    return this.calls.filter((call) => call.method === method);
  }

  /** Resolves with the nth call of a method, past or future. */
  async called(method: string, nth = 1): Promise<SeenCall> {
    await this.#until(() => this.seen(method).length >= nth);
    return this.seen(method)[nth - 1] as SeenCall;
  }

  notify<N extends NotificationName>(method: N, params: NotificationParams<N>): void {
    this.sendRaw(JSON.stringify({ jsonrpc: "2.0", method, params }));
  }

  sendRaw(frame: string | Buffer): void {
    for (const socket of this.sockets) socket.send(frame);
  }

  /** Breaks the sockets without a close frame. */
  breakSockets(): void {
    for (const socket of this.sockets) socket.terminate();
    for (const server of [this.#unix, this.#tcp]) server.closeAllConnections();
  }

  closeSockets(code: number, reason: string): void {
    for (const socket of this.sockets) socket.close(code, reason);
  }

  /** Stops listening on the Unix socket. */
  async stopUnix(): Promise<void> {
    this.#unix.close();
    await once(this.#unix, "close");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.breakSockets();
    for (const server of [this.#unix, this.#tcp]) {
      server.closeAllConnections();
      if (server.listening) await new Promise((resolve) => server.close(resolve));
    }
    closeSync(this.#lock);
    rmSync(this.stateDir, { recursive: true, force: true });
  }

  #onSocket(socket: WebSocket): void {
    this.sockets.add(socket);
    socket.on("close", () => this.sockets.delete(socket));
    socket.on("error", () => {});
    let isFirst = true;
    socket.on("message", (data: Buffer) => {
      const { method, params, id } = JSON.parse(data.toString()) as SeenCall;
      const isGreeting = (isFirst && method === "daemon/info") || method === "daemon/hello";
      isFirst = false;
      const call: SeenCall = { method, params, id, socket, afterwards: [] };
      void this.#reply(call, isGreeting).then((reply) => {
        if (reply !== undefined && socket.readyState === socket.OPEN) socket.send(JSON.stringify(reply));
        for (const act of call.afterwards) act();
      });
    });
  }

  async #onPost(request: IncomingMessage): Promise<{ readonly status: number; readonly body: string }> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const refused = this.#refusal(request);
    if (refused !== undefined) return refused;
    const { method, params, id } = JSON.parse(Buffer.concat(chunks).toString()) as SeenCall;
    const reply = await this.#reply({ method, params, id, socket: undefined, afterwards: [] });
    return reply === undefined ? await new Promise(() => {}) : { status: 200, body: JSON.stringify(reply) };
  }

  #refusal({ headers }: IncomingMessage): { readonly status: number; readonly body: string } | undefined {
    const offered = headers["sec-websocket-protocol"]?.split(/, ?/) ?? [];
    const good =
      headers.authorization === `Bearer ${this.token}` || offered.includes(TOKEN_SUBPROTOCOL_PREFIX + this.token);
    return this.refuse?.() ?? (good ? undefined : { status: 401, body: "" });
  }

  async #reply(call: SeenCall, isGreeting = false): Promise<object | undefined> {
    if (!isGreeting) this.calls.push(call);
    const base = { jsonrpc: "2.0", id: call.id };
    try {
      const answer = this.#answers.get(call.method);
      if (answer === undefined && call.id !== undefined) throw new WireError("method_not_found", `no ${call.method}`);
      const result = answer === undefined ? noAnswer : answer(call.params as never, call);
      for (const check of [...this.#waiting]) check();
      return result === noAnswer ? undefined : { ...base, result: await result };
    } catch (error) {
      if (!(error instanceof WireError)) throw error;
      for (const check of [...this.#waiting]) check();
      return { ...base, error: { code: error.code, message: error.message, data: error.data } };
    }
  }

  async #until(condition: () => boolean): Promise<void> {
    if (condition()) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const check = (): void => {
      if (condition()) resolve();
    };
    this.#waiting.add(check);
    await promise;
    this.#waiting.delete(check);
  }
}
