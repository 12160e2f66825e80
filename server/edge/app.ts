import type { Logger } from "pino";
import { within } from "../lib/deadline.ts";
import type { Dispatcher } from "../rpc/dispatcher.ts";
import type { TokenSource } from "../rpc/tokens.ts";
import { Admission, type Transport } from "./admission.ts";
import { createHttp } from "./http.ts";
import { defaultEdgeLimits, type EdgeLimits } from "./limits.ts";
import { listenTcp, listenUnix, type SocketFile } from "./listen.ts";
import { TransportServer } from "./transport-server.ts";
import { WebSockets } from "./web-sockets.ts";

export interface EdgeOptions {
  readonly dispatcher: Dispatcher;
  readonly tokens: TokenSource;
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
  /**
   * Takes no more connections, closes WebSockets with 1001, and lets HTTP requests have their answer. What has not
   * ended after `drainMs` (default: `closeTimeoutMs`) is cut off. Always the same promise.
   */
  close(drainMs?: number): Promise<void>;
}

/** The edge: one set of routes and one admission on two transports, loopback TCP and a Unix socket. */
export function createEdge(options: EdgeOptions): Edge {
  const limits: EdgeLimits = { ...defaultEdgeLimits, ...options.limits };
  const { dispatcher, log } = options;
  const admission = new Admission({
    tokens: options.tokens,
    allowedHosts: options.allowedHosts ?? [],
    allowedOrigins: options.allowedOrigins ?? [],
    maxRefusedTokensPerMinute: limits.maxRefusedTokensPerMinute,
  });
  const app = createHttp({ dispatcher, limits, log });
  const webSockets = new WebSockets({ dispatcher, limits, log });
  const tcp = server("tcp");
  const unix = server("unix");
  options.tokens.onEnded((grant) => {
    webSockets.tokenEnded(grant);
    tcp.tokenEnded(grant);
    unix.tokenEnded(grant);
  });
  let socketFile: SocketFile | undefined;
  let closed: Promise<void> | undefined;

  function server(transport: Transport): TransportServer {
    return new TransportServer({
      transport,
      admission,
      limits,
      log,
      onRequest: (request, response) => app.routing(request, response),
      onUpgrade: (request, socket, head) => webSockets.upgrade(request, socket, head),
    });
  }

  return {
    get connections() {
      return webSockets.count;
    },
    listen: async ({ socketPath, port }) => {
      await app.ready();
      const chosen = await listenTcp(tcp.http, port);
      admission.listensOn(chosen);
      socketFile = await listenUnix(unix.http, socketPath);
      return { url: `http://127.0.0.1:${chosen}` };
    },
    close: (drainMs = limits.closeTimeoutMs) => {
      closed ??= close(drainMs);
      return closed;
    },
  };

  async function close(drainMs: number): Promise<void> {
    const all = Promise.all([tcp.stop(), unix.stop(), webSockets.stop()]);
    await socketFile?.remove();
    const ended = await within(all, drainMs);
    if (ended.kind === "timeout") {
      tcp.destroy();
      unix.destroy();
      await all;
    }
    await app.close();
  }
}
