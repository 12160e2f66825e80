import type { Logger } from "pino";
import { HEALTH_PATH } from "../../protocol/wire.ts";
import { within } from "../lib/deadline.ts";
import type { Dispatcher } from "../rpc/dispatcher.ts";
import type { TokenSource } from "../rpc/tokens.ts";
import { Admission, type Transport } from "./admission.ts";
import { EdgeLoad } from "./edge-load.ts";
import { EventStreams } from "./event-streams.ts";
import { createHttp, refuseBody } from "./http.ts";
import { listenTcp, listenUnix, type SocketFile } from "./listen.ts";
import { countRequest } from "./quotas.ts";
import { refuseBeforeBody, refuseRequest } from "./refusal.ts";
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
   * Accepts no more connections, closes WebSockets with 1001, and waits for the answers to HTTP requests. Sockets that
   * are open after `drainMs` (default: `closeTimeoutMs`) are destroyed. Always returns the same promise.
   */
  close(drainMs?: number): Promise<void>;
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
  const { app, serve } = createHttp({ dispatcher, streams, unread, version: options.version ?? "0", limits, log });
  const webSockets = new WebSockets({ dispatcher, limits, quotas, budget: buffers, log });
  const tcp = server("tcp");
  const unix = server("unix");
  const tls = options.tls === undefined ? undefined : { ...options.tls, server: server("tls", options.tls) };
  const servers = [tcp, unix, ...(tls === undefined ? [] : [tls.server])];
  options.tokens.onEnded((grant) => {
    webSockets.tokenEnded(grant);
    for (const each of servers) each.tokenEnded(grant);
  });
  let socketFile: SocketFile | undefined;
  let closed: Promise<void> | undefined;

  function server(transport: Transport, secure?: TlsListener): TransportServer {
    return new TransportServer({
      transport,
      secure,
      admission,
      limits,
      log,
      onRequest: (request, response, goOn) => {
        // The health check needs no place.
        const refused =
          refuseBody(request, limits) ??
          (request.url === HEALTH_PATH ? undefined : countRequest(request, response, quotas, limits.maxBodyBytes));
        if (refused !== undefined) {
          if (goOn === undefined) refuseRequest(response, refused, limits);
          else refuseBeforeBody(response, refused);
          return;
        }
        goOn?.();
        serve(request, response);
      },
      onUpgrade: (request, socket, head) => webSockets.upgrade(request, socket, head),
    });
  }

  return {
    load,
    listen: async ({ socketPath, port }) => {
      await app.ready();
      const chosen = await listenTcp(tcp.http, port);
      admission.listensOn(chosen);
      const tlsPort = tls === undefined ? 0 : await listenTcp(tls.server.http, tls.port, tls.host);
      if (tls !== undefined) admission.listensWithTls(tlsPort, ownHosts(tls.host, tlsPort));
      socketFile = await listenUnix(unix.http, socketPath);
      const url = `http://127.0.0.1:${chosen}`;
      return tls === undefined ? { url } : { url, tlsUrl: tlsUrl(tls.host, tlsPort) };
    },
    close: (drainMs = limits.closeTimeoutMs) => {
      closed ??= close(drainMs);
      return closed;
    },
  };

  async function close(drainMs: number): Promise<void> {
    const all = Promise.all([...servers.map((each) => each.stop()), webSockets.stop(), streams.stop()]);
    await socketFile?.remove();
    const ended = await within(all, drainMs);
    if (ended.kind === "timeout") {
      for (const each of servers) each.destroy();
      await all;
    }
    await app.close();
  }
}
