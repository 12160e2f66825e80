import { createServer, type IncomingMessage, type Server } from "node:http";
import type { Socket } from "node:net";
import type { Logger } from "pino";
import { deferred } from "../lib/deferred.ts";
import type { Dispatcher } from "../rpc/dispatcher.ts";
import { Admission, type Transport } from "./admission.ts";
import { createHttp } from "./http.ts";
import { defaultEdgeLimits, type EdgeLimits } from "./limits.ts";
import { listenTcp, listenUnix } from "./listen.ts";
import { refuseUnreadable } from "./refusal.ts";
import { WebSockets } from "./web-sockets.ts";

export interface EdgeOptions {
  readonly dispatcher: Dispatcher;
  readonly token: string;
  readonly log: Logger;
  readonly limits?: Partial<EdgeLimits> | undefined;
  readonly allowedHosts?: readonly string[] | undefined;
  readonly allowedOrigins?: readonly string[] | undefined;
}

export interface Edge {
  /** How many WebSocket connections there are. */
  readonly connections: number;
  /** Listens on both transports. Throws a StartError; what was opened is closed again by {@link close}. */
  listen(where: { readonly socketPath: string; readonly port: number }): Promise<{ readonly url: string }>;
  /** Takes no more connections and closes those that are open. Always the same promise. */
  close(): Promise<void>;
}

/** The edge: one set of routes and one admission on two transports, loopback TCP and a Unix socket. */
export function createEdge(options: EdgeOptions): Edge {
  const limits: EdgeLimits = { ...defaultEdgeLimits, ...options.limits };
  const { dispatcher, log } = options;
  const admission = new Admission({
    token: options.token,
    allowedHosts: options.allowedHosts ?? [],
    allowedOrigins: options.allowedOrigins ?? [],
    maxRefusedTokensPerMinute: limits.maxRefusedTokensPerMinute,
  });
  const unixRequests = new WeakSet<IncomingMessage>();
  const app = createHttp({
    dispatcher,
    admission,
    transportOf: (request) => (unixRequests.has(request.raw) ? "unix" : "tcp"),
    limits,
    log,
  });
  const webSockets = new WebSockets({ dispatcher, admission, limits, log });
  const tcp = server("tcp");
  const unix = server("unix");
  const sockets = new Set<Socket>();
  let closed: Promise<void> | undefined;

  function server(transport: Transport): Server {
    const http = createServer(
      {
        maxHeaderSize: limits.maxHeaderBytes,
        headersTimeout: limits.headersTimeoutMs,
        requestTimeout: limits.requestTimeoutMs,
        keepAliveTimeout: limits.keepAliveTimeoutMs,
        connectionsCheckingInterval: Math.min(limits.headersTimeoutMs, 5_000),
        noDelay: true,
      },
      (request, response) => {
        if (transport === "unix") unixRequests.add(request);
        app.routing(request, response);
      },
    );
    http.maxConnections = limits.maxSockets;
    http.on("connection", (socket) => {
      sockets.add(socket);
      socket.once("close", () => sockets.delete(socket));
    });
    http.on("clientError", refuseUnreadable);
    // Once it listens, a server fails by what it cannot accept (no file descriptors): it goes on with the others.
    http.on("error", (error) => log.error({ err: error }, "a socket could not be accepted"));
    http.on("upgrade", (request, socket, head) => webSockets.upgrade(request, socket as Socket, head, transport));
    return http;
  }

  return {
    get connections() {
      return webSockets.count;
    },
    listen: async ({ socketPath, port }) => {
      await app.ready();
      const chosen = await listenTcp(tcp, port);
      admission.listensOn(chosen);
      await listenUnix(unix, socketPath);
      return { url: `http://127.0.0.1:${chosen}` };
    },
    close: () => {
      closed ??= close();
      return closed;
    },
  };

  async function close(): Promise<void> {
    const servers = [tcp, unix];
    const ended = servers.map(end);
    await webSockets.close();
    // Node forgets the sockets that were upgraded, or refused to be.
    for (const socket of sockets) socket.destroy();
    await Promise.all(ended);
    await app.close();
  }
}

/** Node removes a Unix socket's path when its server closes. */
function end(http: Server): Promise<void> {
  const { promise, resolve } = deferred<void>();
  if (!http.listening) return Promise.resolve();
  http.close(() => resolve());
  return promise;
}
