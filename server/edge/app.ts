import type { IncomingMessage, ServerResponse } from "node:http";
import type { FastifyInstance } from "fastify";
import type { Logger } from "pino";
import { HEALTH_PATH } from "../../protocol/wire.ts";
import { within } from "../lib/deadline.ts";
import type { Dispatcher } from "../rpc/dispatcher.ts";
import type { TokenSource } from "../rpc/tokens.ts";
import { Admission, type Transport } from "./admission.ts";
import { Answers } from "./answers.ts";
import { EdgeLoad } from "./edge-load.ts";
import { EventStreams } from "./event-streams.ts";
import { listenTcp, listenUnix, type SocketFile } from "./listen.ts";
import { countRequest } from "./quotas.ts";
import { httpRefusal, refuseBeforeBody, refuseBody, refuseRequest } from "./refusal.ts";
import { RpcOverHttp } from "./rpc-over-http.ts";
import { ownHosts, type TlsListener, tlsUrl } from "./tls.ts";
import { TransportServer } from "./transport-server.ts";
import { WebSockets } from "./web-sockets.ts";

export interface EdgeOptions {
  readonly dispatcher: Dispatcher;
  readonly tokens: TokenSource;
  /** The version of the package, for the documents. Default: 0. */
  readonly version?: string | undefined;
  readonly log: Logger;
  /** Default: a new one, with the default limits. */
  readonly load?: EdgeLoad | undefined;
  readonly allowedHosts?: readonly string[] | undefined;
  readonly allowedOrigins?: readonly string[] | undefined;
  /** An address to listen on in addition to loopback and the Unix socket. Default: none. */
  readonly tls?: TlsListener | undefined;
}

/** The URLs of the TCP transports; `tlsUrl` is the address beyond loopback. */
export interface Listening {
  readonly url: string;
  readonly tlsUrl?: string;
}

export interface Edge {
  readonly load: EdgeLoad;
  /** Listens on all transports. Throws a StartError; {@link close} then closes those that are open. */
  listen(where: { readonly socketPath: string; readonly port: number }): Promise<Listening>;
  /**
   * Accepts no more connections, closes WebSockets, and waits for the answers to HTTP requests. Always returns the same
   * promise.
   */
  close(options?: CloseOptions): Promise<void>;
}

export interface CloseOptions {
  /** After this time open sockets are destroyed. Default: `closeTimeoutMs`. */
  readonly drainMs?: number;
  /** Whether another daemon follows at once: WebSockets are closed with 1012 instead of 1001. Default: false. */
  readonly isRestart?: boolean;
}

/** Creates the edge: one set of routes and one admission on loopback TCP, a Unix socket and, if configured, TLS. */
export function createEdge(options: EdgeOptions): Edge {
  const { dispatcher, load = new EdgeLoad(), log } = options;
  const { limits, quotas, buffers } = load;
  const admission = new Admission({
    tokens: options.tokens,
    allowedHosts: options.allowedHosts ?? [],
    allowedOrigins: options.allowedOrigins ?? [],
    maxRefusedTokensPerMinute: limits.maxRefusedTokensPerMinute,
  });
  const { eventStreams: quota, unreadBytes: unread } = quotas;
  const streams = new EventStreams({ limits, quota, budget: buffers, lane: (grant) => dispatcher.lane(grant), log });
  const answers = new Answers({ limits, unread, lane: (grant) => dispatcher.lane(grant) });
  const rpc = new RpcOverHttp({ dispatcher, answers, limits, log });
  const webSockets = new WebSockets({
    dispatcher,
    version: options.version ?? "0",
    limits,
    quotas,
    budget: buffers,
    log,
  });
  const tcp = server("tcp");
  const unix = server("unix");
  const tls = options.tls === undefined ? undefined : { ...options.tls, server: server("tls", options.tls) };
  const servers = [tcp, unix, ...(tls === undefined ? [] : [tls.server])];
  options.tokens.onEnded((grant) => {
    webSockets.tokenEnded(grant);
    for (const each of servers) each.tokenEnded(grant);
  });
  let socketFile: SocketFile | undefined;
  let loading: Promise<FastifyInstance> | undefined;
  let app: FastifyInstance | undefined;
  let closed: Promise<void> | undefined;

  function server(transport: Transport, secure?: TlsListener): TransportServer {
    return new TransportServer({
      transport,
      secure,
      refuse: (request) => admission.refuse(request, transport),
      limits,
      log,
      onRequest: (request, response, goOn) => {
        // The health check needs no place.
        const refused =
          refuseBody(request, limits.maxBodyBytes) ??
          (request.url === HEALTH_PATH ? undefined : countRequest(request, response, quotas, limits.maxBodyBytes));
        if (refused !== undefined) {
          if (goOn === undefined) refuseRequest(response, refused, limits);
          else refuseBeforeBody(response, refused);
          return;
        }
        goOn?.();
        if (rpc.serve(request, response)) return;
        if (app === undefined) void loadAndRoute(request, response);
        else app.routing(request, response);
      },
      onUpgrade: (request, socket, head) => webSockets.upgrade(request, socket, head),
    });
  }

  /** Many daemons serve WebSockets and plain JSON-RPC only: fastify and the routes would take 7 MiB of each. */
  async function loadAndRoute(request: IncomingMessage, response: ServerResponse): Promise<void> {
    loading ??= loadRoutes();
    try {
      app = await loading;
    } catch (error) {
      loading = undefined;
      log.error({ err: error }, "the HTTP routes could not be loaded");
      refuseRequest(response, httpRefusal(500, "The daemon failed; its log has the cause."), limits);
      return;
    }
    app.routing(request, response);
  }

  async function loadRoutes(): Promise<FastifyInstance> {
    const { createHttp } = await import("./http.ts");
    const { version = "0" } = options;
    const routes = createHttp({ dispatcher, streams, answers, rpc, version, limits, log });
    await routes.ready();
    return routes;
  }

  return {
    load,
    listen: async ({ socketPath, port }) => {
      const chosen = await listenTcp(tcp.http, port);
      admission.listensOn(chosen);
      const tlsPort = tls === undefined ? 0 : await listenTcp(tls.server.http, tls.port, tls.host);
      if (tls !== undefined) admission.listensWithTls(tlsPort, ownHosts(tls.host, tlsPort));
      socketFile = await listenUnix(unix.http, socketPath);
      const url = `http://127.0.0.1:${chosen}`;
      return tls === undefined ? { url } : { url, tlsUrl: tlsUrl(tls.host, tlsPort) };
    },
    close: ({ drainMs = limits.closeTimeoutMs, isRestart = false } = {}) => {
      closed ??= close(drainMs, isRestart);
      return closed;
    },
  };

  async function close(drainMs: number, isRestart: boolean): Promise<void> {
    const all = Promise.all([...servers.map((each) => each.stop()), webSockets.stop(isRestart), streams.stop()]);
    await socketFile?.remove();
    const ended = await within(all, drainMs);
    if (ended.kind === "timeout") {
      for (const each of servers) each.destroy();
      await all;
    }
    await app?.close();
  }
}
