import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Logger } from "pino";
import { WireError } from "../../protocol/errors.ts";
import { Tally } from "../lib/tally.ts";
import type { Grant } from "../rpc/grant.ts";
import { type Admission, grantOf, isUpgrade, type Transport } from "./admission.ts";
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
import { whenGone } from "./when-gone.ts";

export interface TransportServerOptions {
  readonly transport: Transport;
  /** The certificate and its key. Default: no TLS. */
  readonly secure?: TlsListener | undefined;
  readonly admission: Admission;
  readonly limits: EdgeLimits;
  readonly log: Logger;
  /** Gets requests that were admitted; `goOn` where the peer sends a body only when it is told to. */
  readonly onRequest: (request: IncomingMessage, response: ServerResponse, goOn: (() => void) | undefined) => void;
  /** Gets requests for a WebSocket that were admitted. */
  readonly onUpgrade: (request: IncomingMessage, socket: Socket, head: Buffer) => void;
}

/** What is known of a socket while it is HTTP's. */
interface SocketUse {
  /** Requests that wait for their answer. Undefined: there was none, or it is not HTTP's any more. */
  waiting: number | undefined;
  /** Its newest answer. Those before it come before it. */
  newest: ServerResponse | undefined;
  /** What the tokens of its requests allow: an answer to an earlier one may still go on. */
  readonly grants: Set<Grant>;
}

/** A socket that has not shown a token. */
interface Tokenless {
  /** Before the handshake of TLS the plain one. */
  socket: Socket;
  readonly timer: NodeJS.Timeout;
  /** The turn of the event loop in which it came, as {@link TransportServer} counts. */
  readonly turn: number;
}

interface Lost {
  readonly why: string;
  readonly [detail: string]: unknown;
}

/** The HTTP server of one transport: admission and the bounds of sockets, before anything else sees a request. */
export class TransportServer {
  /** For listening. */
  readonly http: Server;
  readonly #options: TransportServerOptions;
  readonly #sockets = new Map<Socket, SocketUse>();
  /** Those that are not secured yet, where they are to be, by their peers. */
  readonly #handshakes = new Map<string, Socket>();
  /** How many sockets each address beyond loopback has. */
  readonly #addresses = new Map<string, number>();
  /** Sockets that have not shown a token yet, by their peers, the oldest first. Not those of the Unix socket. */
  readonly #tokenless = new Map<string, Tokenless>();
  /** Counts while there are more than their share. */
  #turn = 0;
  #isEnforcing = false;
  /** Sockets that were closed as they came: anybody makes those, and as many as they like. */
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
    const bounds = {
      maxHeaderSize: limits.maxHeaderBytes,
      headersTimeout: limits.headersTimeoutMs,
      requestTimeout: limits.requestTimeoutMs,
      keepAliveTimeout: limits.keepAliveTimeoutMs,
      connectionsCheckingInterval: Math.min(limits.headersTimeoutMs, 5_000),
      noDelay: true,
      // Admission refuses those without one, in our words.
      requireHostHeader: false,
      // Some clients offer h2c with every request; those are served as HTTP/1.1.
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
    // Node's own way, at its close, also ends sockets whose answer is written but has not left yet.
    this.http.closeIdleConnections = () => {};
    this.http.on("upgrade", (request, socket, head) => this.#upgrade(request, socket as Socket, head));
    // Node itself would answer these two before anybody has looked at the request.
    this.http.on("checkContinue", (request, response) => this.#request(request, response, "100-continue"));
    this.http.on("checkExpectation", (request, response) => this.#request(request, response, "other"));
    this.http.on("connect", (request, socket) => this.#refuseTunnel(request, socket as Socket));
    this.http.on("clientError", (error: ParserError, socket) => this.#unreadable(error, socket as Socket));
    // Once it listens, a server fails by what it cannot accept (no file descriptors): it goes on with the others.
    this.http.on("error", (error) => this.#lost.add("unaccepted", { err: error, why: "a socket was not accepted" }));
    this.http.on("drop", () => this.#lost.add("drop", { why: "too many sockets: one was closed" }));
    if (transport === "unix") this.http.on("connection", (socket) => this.#hold(socket));
    else if (secure === undefined) {
      this.http.on("connection", (socket) => {
        this.#hold(socket);
        this.#expectToken(socket);
      });
    } else {
      this.http.on("connection", (socket) => this.#holdUntilSecure(socket));
      this.http.on("secureConnection", (socket: Socket) => {
        this.#hold(socket);
        const peer = peerOf(socket);
        this.#handshakes.delete(peer);
        const waiting = this.#tokenless.get(peer);
        if (waiting !== undefined) waiting.socket = socket;
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

  /**
   * Anybody can open sockets. So those without a token have a small share, in which a new one takes the place of the oldest,
   * and a deadline: they keep nobody out who has a token.
   */
  #expectToken(socket: Socket): void {
    const peer = peerOf(socket);
    const timer = setTimeout(() => this.#endTokenless(peer), this.#options.limits.tokenTimeoutMs).unref();
    const added: Tokenless = { socket, timer, turn: this.#turn };
    this.#tokenless.set(peer, added);
    socket.once("close", () => {
      clearTimeout(timer);
      if (this.#tokenless.get(peer) === added) this.#tokenless.delete(peer);
    });
    if (this.#isEnforcing || this.#tokenless.size <= this.#smallestShare) return;
    this.#isEnforcing = true;
    setImmediate(() => this.#enforce());
  }

  get #smallestShare(): number {
    const { maxSocketsWithoutToken: all, maxSocketsWithoutTokenPerAddress: each } = this.#options.limits;
    return this.#options.secure === undefined ? all : Math.min(all, each);
  }

  /**
   * Closes the oldest sockets beyond the share. What a client sends with its connect is read in the turn of the event loop
   * after the one that accepts it, so a socket stays for that one, however many come in the same.
   */
  #enforce(): void {
    const { maxSocketsWithoutToken, maxSocketsWithoutTokenPerAddress } = this.#options.limits;
    this.#turn += 1;
    const ofAddress = new Map<string | undefined, number>();
    if (this.#options.secure !== undefined) {
      for (const { socket } of this.#tokenless.values())
        ofAddress.set(socket.remoteAddress, (ofAddress.get(socket.remoteAddress) ?? 0) + 1);
    }
    let waits = false;
    for (const [peer, { socket, turn }] of this.#tokenless) {
      const { remoteAddress } = socket;
      const same = ofAddress.get(remoteAddress) ?? 0;
      if (this.#tokenless.size <= maxSocketsWithoutToken && same <= maxSocketsWithoutTokenPerAddress) continue;
      if (turn > this.#turn - 2) {
        waits = true;
        break;
      }
      ofAddress.set(remoteAddress, same - 1);
      this.#lost.add("tokenless", { remoteAddress, why: "too many sockets without a token: the oldest was closed" });
      this.#tokenless.delete(peer);
      socket.destroy();
    }
    this.#isEnforcing = waits;
    if (waits) setImmediate(() => this.#enforce());
  }

  #hasToken(socket: Socket): void {
    const peer = peerOf(socket);
    clearTimeout(this.#tokenless.get(peer)?.timer);
    this.#tokenless.delete(peer);
  }

  #endTokenless(peer: string): void {
    const socket = this.#tokenless.get(peer)?.socket;
    this.#tokenless.delete(peer);
    if (socket === undefined) return;
    // One that has had an answer, or is not secured, is not told.
    if (this.#sockets.has(socket) && this.#sockets.get(socket)?.waiting === undefined) {
      this.#refuse(socket, httpRefusal(408, "No request with a token came in time."));
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
    this.#expectToken(socket);
    socket.once("close", () => {
      if (this.#handshakes.get(peer) === socket) this.#handshakes.delete(peer);
      const left = (this.#addresses.get(remoteAddress) ?? 1) - 1;
      if (left === 0) this.#addresses.delete(remoteAddress);
      else this.#addresses.set(remoteAddress, left);
      this.#drainedIfEmpty();
    });
  }

  /**
   * Takes no more sockets and ends those that wait for a request; others end with the answer they wait for. Resolves
   * when the last has gone, and all that belongs to its requests knows it. Always the same promise.
   */
  stop(): Promise<void> {
    if (this.#stopped !== undefined) return this.#stopped;
    this.#stopped = this.#drained.promise;
    if (this.http.listening) this.http.close();
    for (const [socket, { waiting }] of this.#sockets) {
      // It has had all its answers, or has never said anything.
      if ((waiting ?? socket.bytesRead) === 0) socket.destroySoon();
    }
    for (const socket of this.#handshakes.values()) socket.destroy();
    this.#drainedIfEmpty();
    return this.#stopped;
  }

  /** Ends the sockets of a token that has ended, behind what was written to them. WebSockets are told first, elsewhere. */
  tokenEnded(grant: Grant): void {
    for (const [socket, { grants }] of this.#sockets) {
      if (!grants.has(grant)) continue;
      socket.setTimeout(this.#options.limits.closeTimeoutMs, () => socket.destroy());
      socket.destroySoon();
    }
  }

  /** Ends all sockets at once. */
  destroy(): void {
    for (const socket of [...this.#sockets.keys(), ...this.#handshakes.values()]) socket.destroy();
  }

  #drainedIfEmpty(): void {
    if (this.#stopped !== undefined && this.#sockets.size + this.#handshakes.size === 0) this.#drained.resolve();
  }

  #request(request: IncomingMessage, response: ServerResponse, expects?: "100-continue" | "other"): void {
    const { admission, transport, limits, onRequest } = this.#options;
    const { socket } = request;
    const use = this.#sockets.get(socket) ?? unused();
    use.waiting = (use.waiting ?? 0) + 1;
    use.newest = response;
    whenGone(request, response, () => {
      use.waiting = (use.waiting ?? 1) - 1;
      if (this.#stopped !== undefined) socket.destroySoon();
    });
    // What comes behind a head with an expectation is its body, or the next request, as the peer likes.
    if (this.#stopped !== undefined || expects !== undefined) response.setHeader("connection", "close");
    const refused =
      admission.refuse(request, transport) ??
      this.#overloaded(use.waiting > limits.maxRequestsPerSocket) ??
      (expects === "other" ? httpRefusal(417, "The only expectation that is met here is 100-continue.") : undefined);
    const grant = grantOf(request);
    if (grant !== undefined) {
      if (use.grants.size === 0) this.#hasToken(socket);
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
    const message = `${this.#options.limits.maxRequestsPerSocket} requests of this socket wait for their answer already.`;
    return refusal(new WireError("overloaded", message, { retryAfterMs: 1_000 }));
  }

  #upgrade(request: IncomingMessage, socket: Socket, head: Buffer): void {
    const { admission, transport, log, onUpgrade } = this.#options;
    // It is not HTTP's any more, nor idle.
    const use = this.#sockets.get(socket);
    if (use !== undefined) use.waiting = undefined;
    use?.grants.clear();
    socket.on("error", (error) => log.debug({ err: error }, "a socket failed at its upgrade"));
    const refused =
      admission.refuse(request, transport) ??
      // Before Node 22.21 every upgrade comes here.
      (isUpgrade(request) ? this.#overloaded(false) : httpRefusal(400, "The only upgrade here is to websocket."));
    if (grantOf(request) !== undefined) this.#hasToken(socket);
    if (refused === undefined) onUpgrade(request, socket, head);
    else this.#refuse(socket, refused);
  }

  /** CONNECT: Node has let go of the socket, as for an upgrade. */
  #refuseTunnel(request: IncomingMessage, socket: Socket): void {
    const { admission, transport } = this.#options;
    socket.on("error", () => {});
    this.#refuse(socket, admission.refuse(request, transport) ?? httpRefusal(405, "There are no tunnels here."));
  }

  #refuse(socket: Socket, refused: Refusal | "drop"): void {
    if (refused === "drop") {
      socket.destroy();
      return;
    }
    refuseSocket(socket, refused, this.#options.limits);
  }

  /** The head of a request is not HTTP, is too large, or the request came too slowly. */
  #unreadable(error: ParserError, socket: Socket): void {
    const isSecured = this.#options.secure === undefined || this.#sockets.has(socket);
    if (!socket.writable || !isSecured || error.code === "ECONNRESET") {
      socket.destroy();
      return;
    }
    // Behind the answers to what came before it, and never in the place of one.
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

/** Of Node's `clientError`; `reason` is the parser's own text. */
interface ParserError extends NodeJS.ErrnoException {
  readonly reason?: string;
}

function unused(): SocketUse {
  return { waiting: undefined, newest: undefined, grants: new Set() };
}

/** Unique among open sockets: one port of a peer may have a socket to each address of this machine. */
function peerOf({ remoteAddress, remotePort, localAddress }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localAddress}`;
}

function unreadableAs({ code, reason }: ParserError): Refusal {
  switch (code) {
    case "HPE_HEADER_OVERFLOW":
      return httpRefusal(431, "The head of the request is too large.");
    case "ERR_HTTP_REQUEST_TIMEOUT":
      return httpRefusal(408, "The request did not come in time.");
    case "HPE_INVALID_TRANSFER_ENCODING":
      // The same code is for a length and chunks at once, which has to be 400 (RFC 9112, section 6.3).
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
