import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import type { Logger } from "pino";
import { WebSocketServer } from "ws";
import { WireError } from "../../protocol/errors.ts";
import { WEBSOCKET_PATH, WEBSOCKET_SUBPROTOCOL } from "../../protocol/wire.ts";
import { within } from "../lib/deadline.ts";
import { deferred } from "../lib/deferred.ts";
import type { Dispatcher } from "../rpc/dispatcher.ts";
import type { Admission, Transport } from "./admission.ts";
import { Connection } from "./connection.ts";
import type { EdgeLimits } from "./limits.ts";
import { httpProblem, problem, refuseUpgrade } from "./refusal.ts";

export interface WebSocketsOptions {
  readonly dispatcher: Dispatcher;
  readonly admission: Admission;
  readonly limits: EdgeLimits;
  readonly log: Logger;
}

/** All WebSocket connections, of both transports. */
export class WebSockets {
  readonly #options: WebSocketsOptions;
  readonly #server: WebSocketServer;
  readonly #connections = new Set<Connection>();
  readonly #pings: NodeJS.Timeout;
  readonly #empty = deferred<void>();
  #closing = false;

  constructor(options: WebSocketsOptions) {
    const { limits } = options;
    // ws ends a peer that does not answer the close frame in time. Its published types lack the option.
    const closing = { closeTimeout: limits.closeTimeoutMs };
    this.#options = options;
    this.#server = new WebSocketServer({
      noServer: true,
      clientTracking: false,
      maxPayload: limits.maxFrameBytes,
      perMessageDeflate: false,
      handleProtocols: (offered) => (offered.has(WEBSOCKET_SUBPROTOCOL) ? WEBSOCKET_SUBPROTOCOL : false),
      ...closing,
    });
    this.#server.on("wsClientError", ({ message }, socket) => {
      refuseUpgrade(socket, httpProblem(400, "invalid_request", `${message}.`, { "sec-websocket-version": "13" }));
    });
    this.#pings = setInterval(() => {
      for (const connection of this.#connections) connection.ping();
    }, limits.pingIntervalMs).unref();
  }

  get count(): number {
    return this.#connections.size;
  }

  /** Decides on a request to upgrade: the same admission as for HTTP, before anything is granted. */
  upgrade(request: IncomingMessage, socket: Socket, head: Buffer, transport: Transport): void {
    const { admission, limits, log } = this.#options;
    socket.on("error", (error) => log.debug({ err: error }, "a socket failed during its upgrade"));
    // For a peer that does not read its refusal; ws lifts it where the upgrade is granted.
    socket.setTimeout(limits.closeTimeoutMs, () => socket.destroy());
    const refused = admission.refuse(request, transport, "upgrade");
    if (refused !== undefined) {
      if (admission.overrun) socket.destroy();
      else refuseUpgrade(socket, problem(refused));
    } else if ((request.url ?? "").split("?")[0] !== WEBSOCKET_PATH) {
      refuseUpgrade(socket, httpProblem(404, "method_not_found", "There is nothing to upgrade to at this path."));
    } else if (request.method !== "GET") {
      refuseUpgrade(socket, httpProblem(405, "method_not_found", "This path takes GET.", { allow: "GET" }));
    } else if (this.#closing) {
      refuseUpgrade(socket, problem(new WireError("shutting_down", "The daemon is about to end.")));
    } else if (this.#connections.size >= limits.maxConnections) {
      const error = new WireError("overloaded", `There are ${limits.maxConnections} connections, which is the limit.`, {
        retryAfterMs: 1_000,
      });
      refuseUpgrade(socket, problem(error, 503, { "retry-after": "1" }));
    } else {
      this.#server.handleUpgrade(request, socket, head, (webSocket) => {
        const connection = new Connection({ webSocket, socket, dispatcher: this.#options.dispatcher, limits, log });
        this.#connections.add(connection);
        connection.gone.addEventListener("abort", () => {
          this.#connections.delete(connection);
          if (this.#closing && this.#connections.size === 0) this.#empty.resolve();
        });
      });
    }
  }

  /** Closes all with 1001, and ends those that do not close in time. */
  async close(): Promise<void> {
    this.#closing = true;
    clearInterval(this.#pings);
    if (this.#connections.size === 0) return;
    for (const connection of this.#connections) connection.shutDown();
    const closed = await within(this.#empty.promise, this.#options.limits.closeTimeoutMs);
    if (closed.kind === "timeout") for (const connection of this.#connections) connection.terminate();
  }
}
