import { randomUUID } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import type { Logger } from "pino";
import { WebSocketServer } from "ws";
import { WireError } from "../../protocol/errors.ts";
import {
  ACP_PATH,
  ACP_SUBPROTOCOL,
  COMPAT_PATH,
  COMPAT_SUBPROTOCOL,
  WEBSOCKET_PATH,
  WEBSOCKET_SUBPROTOCOL,
} from "../../protocol/wire.ts";
import { compatDispatcher } from "../rpc/compat-v0.ts";
import type { Dispatcher } from "../rpc/dispatcher.ts";
import type { Grant } from "../rpc/grant.ts";
import { grantOf, isLocal } from "./admission.ts";
import type { BufferBudget } from "./buffer-budget.ts";
import { Connection } from "./connection.ts";
import type { EdgeLimits } from "./limits.ts";
import type { Quotas } from "./quotas.ts";
import { httpRefusal, pathOf, type Refusal, refusal, refuseSocket } from "./refusal.ts";

export interface WebSocketsOptions {
  readonly dispatcher: Dispatcher;
  /** The version of the package. */
  readonly version: string;
  readonly limits: EdgeLimits;
  readonly quotas: Pick<Quotas, "connections" | "inboundBytes">;
  /** The frames that wait for all connections. */
  readonly budget: BufferBudget;
  /** What is at the path of a request. Default: the daemon's own endpoints. */
  readonly endpointOf?: (request: IncomingMessage) => Endpoint | undefined;
  /** Called when a connection of a token was opened (1) or has ended (-1). */
  readonly onConnection?: (grant: Grant, change: 1 | -1) => void;
  readonly log: Logger;
}

/** What the peer of a WebSocket speaks, by its path. */
export type Endpoint =
  | { readonly kind: "own" | "acp"; readonly subprotocol: string }
  | { readonly kind: "compat"; readonly subprotocol: string; readonly sessionId: string };

/** The WebSocket connections of all transports. */
export class WebSockets {
  readonly #options: WebSocketsOptions;
  readonly #endpointOf: (request: IncomingMessage) => Endpoint | undefined;
  readonly #server: WebSocketServer;
  readonly #connections = new Set<Connection>();
  readonly #pings: NodeJS.Timeout;
  readonly #stopped = Promise.withResolvers<void>();
  #stopping = false;
  /** Loaded for the first editor, because many daemons never have one. */
  #acp: Dispatcher | undefined;
  #loadingAcp: Promise<void> | undefined;
  /** The ids of the connections whose upgrades are being answered. */
  readonly #ids = new WeakMap<IncomingMessage, string>();

  constructor(options: WebSocketsOptions) {
    this.#options = options;
    this.#endpointOf = options.endpointOf ?? ownEndpointOf;
    const { limits } = options;
    // A variable, because the published types of ws lack `closeTimeout`, which ends a peer that answers no close frame.
    const serverOptions = {
      noServer: true,
      clientTracking: false,
      maxPayload: limits.maxFrameBytes,
      perMessageDeflate: false,
      // The connection answers pings.
      autoPong: false,
      closeTimeout: limits.closeTimeoutMs,
      handleProtocols: (offered: Set<string>, request: IncomingMessage) => {
        const { subprotocol = "" } = this.#endpointOf(request) ?? {};
        return offered.has(subprotocol) ? subprotocol : (false as const);
      },
    };
    this.#server = new WebSocketServer(serverOptions);
    this.#server.on("wsClientError", (error, socket) => {
      const refused = httpRefusal(400, `${error.message}.`, { "sec-websocket-version": "13" });
      this.#refuse(socket as Socket, refused);
    });
    this.#server.on("headers", (headers, request) => {
      const id = this.#ids.get(request);
      if (id !== undefined && this.#endpointOf(request)?.kind === "acp") headers.push(`Acp-Connection-Id: ${id}`);
    });
    this.#pings = setInterval(() => {
      for (const connection of this.#connections) connection.ping();
    }, limits.pingIntervalMs).unref();
  }

  /** Upgrades an admitted request, or refuses it for its path or a full quota. */
  upgrade(request: IncomingMessage, socket: Socket, head: Buffer): void {
    const refused = this.#refusal(request);
    if (refused !== undefined) {
      this.#refuse(socket, refused);
      return;
    }
    const endpoint = this.#endpointOf(request);
    if (endpoint === undefined) return;
    if (endpoint.kind === "acp" && this.#acp === undefined) {
      void this.#upgradeLater(request, socket, head);
      return;
    }
    const id = randomUUID();
    this.#ids.set(request, id);
    this.#server.handleUpgrade(request, socket, head, (webSocket) => {
      const { limits, quotas, budget, onConnection, log } = this.#options;
      const dispatcher = this.#dispatcherOf(endpoint);
      const grant = grantOf(request);
      const connection = new Connection({
        id,
        ignoresBinary: endpoint.kind === "acp",
        webSocket,
        socket,
        budget,
        inbound: quotas.inboundBytes,
        dispatcher,
        grant,
        isLocal: isLocal(request),
        limits,
        log,
      });
      this.#connections.add(connection);
      quotas.connections.add(grant, 1);
      if (grant !== undefined) onConnection?.(grant, 1);
      connection.gone.addEventListener("abort", () => {
        this.#connections.delete(connection);
        quotas.connections.add(grant, -1);
        if (grant !== undefined) onConnection?.(grant, -1);
        if (this.#stopping && this.#connections.size === 0) this.#stopped.resolve();
      });
    });
  }

  /** Closes the connections of a token that has ended. */
  tokenEnded(grant: Grant): void {
    for (const connection of this.#connections) if (connection.grant === grant) connection.tokenEnded();
  }

  /** Closes all connections with 1001, or 1012 for a restart. Resolves when the last one is closed. */
  stop(isRestart: boolean): Promise<void> {
    this.#stopping = true;
    clearInterval(this.#pings);
    if (this.#connections.size === 0) this.#stopped.resolve();
    for (const connection of this.#connections) connection.shutDown(isRestart);
    return this.#stopped.promise;
  }

  #dispatcherOf(endpoint: Endpoint): Dispatcher {
    const { dispatcher, log } = this.#options;
    switch (endpoint.kind) {
      case "own":
        return dispatcher;
      case "acp":
        return this.#acp ?? dispatcher;
      case "compat":
        return compatDispatcher({ dispatcher, sessionId: endpoint.sessionId, log });
    }
  }

  async #upgradeLater(request: IncomingMessage, socket: Socket, head: Buffer): Promise<void> {
    this.#loadingAcp ??= this.#loadAcp();
    try {
      await this.#loadingAcp;
    } catch (error) {
      this.#loadingAcp = undefined;
      this.#options.log.error({ err: error }, "the Agent Client Protocol could not be loaded");
      this.#refuse(socket, httpRefusal(500, "The daemon failed; its log has the cause."));
      return;
    }
    // In the meantime its token may have ended.
    if (grantOf(request)?.isEnded === true) socket.destroy();
    else this.upgrade(request, socket, head);
  }

  async #loadAcp(): Promise<void> {
    const { acpDispatcher } = await import("./acp-conversation.ts");
    const { dispatcher, version } = this.#options;
    this.#acp = acpDispatcher({ dispatcher, version });
  }

  #refusal(request: IncomingMessage): Refusal | undefined {
    if (this.#stopping) return refusal(new WireError("shutting_down", "The daemon is shutting down."));
    if (this.#endpointOf(request) === undefined)
      return httpRefusal(404, "There is nothing to upgrade to at this path.");
    if (request.method !== "GET") return httpRefusal(405, "This path takes GET.", { allow: "GET" });
    if (request.httpVersion !== "1.1") return httpRefusal(400, "A WebSocket is opened by a request of HTTP/1.1.");
    // ws accepts version 8 too, whose close and origin differ.
    if (request.headers["sec-websocket-version"] !== "13")
      return httpRefusal(400, "The version of WebSocket here is 13.", { "sec-websocket-version": "13" });
    const full = this.#options.quotas.connections.refusal(grantOf(request), 1);
    return full === undefined ? undefined : refusal(full);
  }

  #refuse(socket: Socket, refused: Refusal): void {
    refuseSocket(socket, refused, this.#options.limits);
  }
}

/** Undefined: nothing is at this path. */
function ownEndpointOf({ url }: IncomingMessage): Endpoint | undefined {
  const path = pathOf(url);
  if (path === WEBSOCKET_PATH) return { kind: "own", subprotocol: WEBSOCKET_SUBPROTOCOL };
  if (path === ACP_PATH) return { kind: "acp", subprotocol: ACP_SUBPROTOCOL };
  const sessionId = path.startsWith(COMPAT_PATH) ? path.slice(COMPAT_PATH.length) : "";
  if (!/^[0-9A-Za-z](?:[0-9A-Za-z._-]{0,126}[0-9A-Za-z])?$/.test(sessionId)) return undefined;
  return { kind: "compat", subprotocol: COMPAT_SUBPROTOCOL, sessionId };
}
