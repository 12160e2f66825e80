import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Logger } from "pino";
import { WireError } from "../../protocol/errors.ts";
import { Tally } from "../lib/tally.ts";
import type { Grant } from "../rpc/grant.ts";
import { grantOf, isUpgrade, type Transport } from "./admission.ts";
import type { EdgeLimits } from "./limits.ts";
import { createServer, createTlsServer } from "./node-http.ts";
import {
  httpRefusal,
  type Refusal,
  refusal,
  refuseBeforeBody,
  refuseRequest,
  refuseSocket,
  unknownTransferCoding,
} from "./refusal.ts";
import { type TlsListener, tlsCiphers } from "./tls.ts";
import { peerOf, TokenlessSockets } from "./tokenless-sockets.ts";
import { whenGone } from "./when-gone.ts";

export interface TransportServerOptions {
  /** For the log. */
  readonly transport: Transport | "web";
  /** The certificate and its key. Default: no TLS. */
  readonly secure?: TlsListener | undefined;
  /** Decides by the head of a request, as `Admission.refuse` does. */
  readonly refuse: (request: IncomingMessage) => Refusal | "drop" | undefined;
  readonly limits: EdgeLimits;
  readonly log: Logger;
  /** Takes admitted requests. `goOn` is present if the peer waits for `100 Continue` before it sends a body. */
  readonly onRequest: (request: IncomingMessage, response: ServerResponse, goOn: (() => void) | undefined) => void;
  /** Takes admitted requests for a WebSocket. */
  readonly onUpgrade: (request: IncomingMessage, socket: Socket, head: Buffer) => void;
}

/** The state of a socket while node:http owns it. */
interface SocketUse {
  /** The number of unanswered requests. Undefined before the first request and after an upgrade. */
  waiting: number | undefined;
  /** The newest response. Earlier ones are sent first. */
  newest: ServerResponse | undefined;
  /** The grants of its requests: a response to an earlier one may be unfinished. */
  readonly grants: Set<Grant>;
}

interface Lost {
  readonly why: string;
  readonly [detail: string]: unknown;
}

/**
 * The HTTP server of one transport: admission and the bounds of sockets. It runs before fastify, because fastify has one
 * server for one address, answers undecodable paths before its hooks, and sees neither upgrades nor CONNECT.
 */
export class TransportServer {
  /** The server, for listening. */
  readonly http: Server;
  readonly #options: TransportServerOptions;
  readonly #sockets = new Map<Socket, SocketUse>();
  /** Sockets before the end of their TLS handshake, by peer. */
  readonly #handshakes = new Map<string, Socket>();
  /** The number of sockets of each address beyond loopback. */
  readonly #addresses = new Map<string, number>();
  /** Not those of the Unix socket. */
  readonly #tokenless: TokenlessSockets;
  /** Logs closed sockets in summary, because any process can open many. */
  readonly #lost: Tally<Lost>;
  readonly #drained = Promise.withResolvers<void>();
  #stopped: Promise<void> | undefined;

  constructor(options: TransportServerOptions) {
    this.#options = options;
    const { limits, log, secure, transport } = options;
    this.#lost = new Tally<Lost>({
      everyMs: 1_000,
      first: ({ why, ...details }) => log.warn({ transport, ...details }, why),
      further: ({ why, ...details }, count) => log.warn({ transport, ...details, count }, why),
    });
    this.#tokenless = new TokenlessSockets({
      max: limits.maxSocketsWithoutToken,
      maxPerAddress: secure === undefined ? undefined : limits.maxSocketsWithoutTokenPerAddress,
      timeoutMs: limits.tokenTimeoutMs,
      onTimeout: (socket) => this.#endTokenless(socket),
      onReplaced: ({ remoteAddress }) => {
        this.#lost.add("tokenless", { remoteAddress, why: "too many sockets without a token: the oldest was closed" });
      },
    });
    const bounds = {
      maxHeaderSize: limits.maxHeaderBytes,
      headersTimeout: limits.headersTimeoutMs,
      requestTimeout: limits.requestTimeoutMs,
      keepAliveTimeout: limits.keepAliveTimeoutMs,
      connectionsCheckingInterval: Math.min(limits.headersTimeoutMs, 5_000),
      noDelay: true,
      // Admission refuses a request without Host, with an error of the catalogue.
      requireHostHeader: false,
      // Some clients offer h2c with each request; they are served as HTTP/1.1.
      shouldUpgradeCallback: isUpgrade,
    };
    const onRequest = (request: IncomingMessage, response: ServerResponse): void => this.#request(request, response);
    this.http =
      secure === undefined
        ? createServer(bounds, onRequest)
        : createTlsServer(
            {
              ...bounds,
              cert: secure.cert,
              key: secure.key,
              ciphers: tlsCiphers,
              minVersion: "TLSv1.2",
              handshakeTimeout: limits.headersTimeoutMs,
            },
            onRequest,
          );
    this.http.maxConnections = limits.maxSockets;
    // Node's implementation, called at close, also ends sockets whose written answer has not left yet.
    this.http.closeIdleConnections = () => {};
    this.http.on("upgrade", (request, socket, head) => this.#upgrade(request, socket as Socket, head));
    // Without these listeners Node would answer before admission.
    this.http.on("checkContinue", (request, response) => this.#request(request, response, "100-continue"));
    this.http.on("checkExpectation", (request, response) => this.#request(request, response, "other"));
    this.http.on("connect", (request, socket) => this.#refuseTunnel(request, socket as Socket));
    this.http.on("clientError", (error: ParserError, socket) => this.#unreadable(error, socket as Socket));
    // A listening server emits `error` for a socket that it cannot accept (no file descriptors), and continues.
    this.http.on("error", (error) => this.#lost.add("unaccepted", { err: error, why: "a socket was not accepted" }));
    this.http.on("drop", () => this.#lost.add("drop", { why: "too many sockets: one was closed" }));
    if (transport === "unix") this.http.on("connection", (socket) => this.#hold(socket));
    else if (secure === undefined) {
      this.http.on("connection", (socket) => {
        this.#hold(socket);
        this.#tokenless.add(socket);
      });
    } else {
      this.http.on("connection", (socket) => this.#holdUntilSecure(socket));
      this.http.on("secureConnection", (socket: Socket) => {
        this.#hold(socket);
        this.#handshakes.delete(peerOf(socket));
        this.#tokenless.secured(socket);
      });
    }
  }

  #hold(socket: Socket): void {
    this.#sockets.set(socket, unused());
    socket.once("close", () => {
      this.#sockets.delete(socket);
      this.#drainedIfEmpty();
    });
  }

  #endTokenless(socket: Socket): void {
    // A socket that got an answer, or has no TLS yet, is closed without 408.
    if (this.#sockets.has(socket) && this.#sockets.get(socket)?.waiting === undefined) {
      this.#refuse(socket, httpRefusal(408, "No request with a token arrived in time."));
    } else socket.destroy();
  }

  #holdUntilSecure(socket: Socket): void {
    const peer = peerOf(socket);
    const { remoteAddress = "" } = socket;
    const others = this.#addresses.get(remoteAddress) ?? 0;
    if (others >= this.#options.limits.maxSocketsPerAddress) {
      this.#lost.add("address", { remoteAddress, why: "too many sockets from one address: one was closed" });
      socket.destroy();
      return;
    }
    this.#addresses.set(remoteAddress, others + 1);
    this.#handshakes.set(peer, socket);
    this.#tokenless.add(socket);
    socket.once("close", () => {
      if (this.#handshakes.get(peer) === socket) this.#handshakes.delete(peer);
      const left = (this.#addresses.get(remoteAddress) ?? 1) - 1;
      if (left === 0) this.#addresses.delete(remoteAddress);
      else this.#addresses.set(remoteAddress, left);
      this.#drainedIfEmpty();
    });
  }

  /**
   * Accepts no more sockets, closes idle ones, and closes the others after their answers. Resolves when the last socket is
   * closed and the callbacks of its requests have run. Always returns the same promise.
   */
  stop(): Promise<void> {
    if (this.#stopped !== undefined) return this.#stopped;
    this.#stopped = this.#drained.promise;
    if (this.http.listening) this.http.close();
    for (const [socket, { waiting }] of this.#sockets) {
      // All its requests are answered, or it never sent a byte.
      if ((waiting ?? socket.bytesRead) === 0) socket.destroySoon();
    }
    for (const socket of this.#handshakes.values()) socket.destroy();
    this.#drainedIfEmpty();
    return this.#stopped;
  }

  /** Closes the HTTP sockets of a token that has ended, after their written bytes. WebSockets are closed by their registry. */
  tokenEnded(grant: Grant): void {
    for (const [socket, { grants }] of this.#sockets) {
      if (!grants.has(grant)) continue;
      socket.setTimeout(this.#options.limits.closeTimeoutMs, () => socket.destroy());
      socket.destroySoon();
    }
  }

  /** Destroys all sockets. */
  destroy(): void {
    for (const socket of [...this.#sockets.keys(), ...this.#handshakes.values()]) socket.destroy();
  }

  #drainedIfEmpty(): void {
    if (this.#stopped !== undefined && this.#sockets.size + this.#handshakes.size === 0) this.#drained.resolve();
  }

  #request(request: IncomingMessage, response: ServerResponse, expects?: "100-continue" | "other"): void {
    const { refuse, limits, onRequest } = this.#options;
    const { socket } = request;
    const use = this.#sockets.get(socket) ?? unused();
    use.waiting = (use.waiting ?? 0) + 1;
    use.newest = response;
    whenGone(request, response, () => {
      use.waiting = (use.waiting ?? 1) - 1;
      if (this.#stopped !== undefined) socket.destroySoon();
    });
    // After a head with an expectation a peer may send its body or the next request, so the socket cannot be reused.
    if (this.#stopped !== undefined || expects !== undefined) response.setHeader("connection", "close");
    const refused =
      refuse(request) ??
      this.#overloaded(use.waiting > limits.maxRequestsPerSocket) ??
      (expects === "other" ? httpRefusal(417, "The only supported expectation is 100-continue.") : undefined);
    const grant = grantOf(request);
    if (grant !== undefined) {
      if (use.grants.size === 0) this.#tokenless.remove(socket);
      use.grants.add(grant);
    }
    if (refused === undefined) onRequest(request, response, expects && (() => this.#goOn(response)));
    else if (refused === "drop") socket.destroy();
    else if (expects === undefined) refuseRequest(response, refused, limits);
    else refuseBeforeBody(response, refused);
  }

  #goOn(response: ServerResponse): void {
    if (this.#stopped === undefined) response.removeHeader("connection");
    response.writeContinue();
  }

  #overloaded(tooMany: boolean): Refusal | undefined {
    if (this.#stopped !== undefined) return refusal(new WireError("shutting_down", "The daemon is shutting down."));
    if (!tooMany) return undefined;
    const message = `${this.#options.limits.maxRequestsPerSocket} requests of this socket already wait for their answers.`;
    return refusal(new WireError("overloaded", message, { retryAfterMs: 1_000 }));
  }

  #upgrade(request: IncomingMessage, socket: Socket, head: Buffer): void {
    const { refuse, log, onUpgrade } = this.#options;
    // node:http no longer owns the socket, and it is not idle.
    const use = this.#sockets.get(socket);
    if (use !== undefined) use.waiting = undefined;
    use?.grants.clear();
    socket.on("error", (error) => log.debug({ err: error }, "a socket failed at its upgrade"));
    const refused =
      refuse(request) ??
      // Before Node 22.21 all upgrades arrive here.
      (isUpgrade(request) ? this.#overloaded(false) : httpRefusal(400, "The only supported upgrade is websocket."));
    if (grantOf(request) !== undefined) this.#tokenless.remove(socket);
    if (refused === undefined) onUpgrade(request, socket, head);
    else this.#refuse(socket, refused);
  }

  /** Refuses CONNECT, for which node:http releases the socket as for an upgrade. */
  #refuseTunnel(request: IncomingMessage, socket: Socket): void {
    socket.on("error", () => {});
    this.#refuse(socket, this.#options.refuse(request) ?? httpRefusal(405, "CONNECT is not supported."));
  }

  #refuse(socket: Socket, refused: Refusal | "drop"): void {
    if (refused === "drop") {
      socket.destroy();
      return;
    }
    refuseSocket(socket, refused, this.#options.limits);
  }

  /** Refuses a head that is not HTTP or is too large, and a request that arrives too slowly. */
  #unreadable(error: ParserError, socket: Socket): void {
    const isSecured = this.#options.secure === undefined || this.#sockets.has(socket);
    if (!socket.writable || !isSecured || error.code === "ECONNRESET") {
      socket.destroy();
      return;
    }
    // The refusal follows the answers to earlier requests, and never replaces one.
    const newest = this.#sockets.get(socket)?.newest;
    if (newest?.headersSent && !newest.req.complete) {
      socket.destroySoon();
      return;
    }
    if (newest?.req.complete && !newest.closed) {
      socket.pause();
      newest.once("close", () => {
        if (this.#stopped === undefined) this.#refuse(socket, unreadableAs(error));
      });
      return;
    }
    this.#refuse(socket, unreadableAs(error));
  }
}

/** The error of `clientError`; `reason` is the text of Node's parser. */
interface ParserError extends NodeJS.ErrnoException {
  readonly reason?: string;
}

function unused(): SocketUse {
  return { waiting: undefined, newest: undefined, grants: new Set() };
}

function unreadableAs({ code, reason }: ParserError): Refusal {
  switch (code) {
    case "HPE_HEADER_OVERFLOW":
      return httpRefusal(431, "The head of the request is too large.");
    case "ERR_HTTP_REQUEST_TIMEOUT":
      return httpRefusal(408, "The request did not arrive in time.");
    case "HPE_INVALID_TRANSFER_ENCODING":
      // A request with both a length and chunks has the same code, and must be 400 (RFC 9112, section 6.3).
      return reason?.startsWith("Request has invalid") ? unknownTransferCoding() : notHttp();
    case "HPE_CHUNK_EXTENSIONS_OVERFLOW":
      return httpRefusal(413, "The extensions of a chunk are too large.");
    default:
      return notHttp();
  }
}

function notHttp(): Refusal {
  return httpRefusal(400, "The request is not HTTP.");
}
