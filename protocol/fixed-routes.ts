import { ACP_PATH, HEALTH_PATH, METRICS_PATH, RPC_PATH, WEBSOCKET_PATH } from "./wire.ts";

/** An HTTP path that does not belong to a method. */
export interface FixedRoute {
  readonly verb: "GET" | "POST";
  readonly path: string;
  readonly summary: string;
  /** The media type of its answer. */
  readonly answers: string;
  /** It needs no token. */
  readonly isOpen?: true;
}

/** HTTP paths other than those of the method table. */
export const fixedRoutes: readonly FixedRoute[] = [
  {
    verb: "GET",
    path: HEALTH_PATH,
    summary: "Confirms only that the daemon is alive. Needs no token.",
    answers: "application/json",
    isOpen: true,
  },
  {
    verb: "POST",
    path: RPC_PATH,
    summary:
      "One JSON-RPC request or batch, with the answer in the response; methods that need a connection are not available.",
    answers: "application/json",
  },
  {
    verb: "GET",
    path: WEBSOCKET_PATH,
    summary: "Opens a WebSocket with JSON-RPC in both directions. Without an upgrade the status is 426.",
    answers: "application/problem+json",
  },
  {
    verb: "GET",
    path: ACP_PATH,
    summary:
      "Opens a WebSocket with the Agent Client Protocol, for editors: docs/acp.md. Without an upgrade the status is 426.",
    answers: "application/problem+json",
  },
  {
    verb: "GET",
    path: METRICS_PATH,
    summary: "The result of `daemon/metrics` in Prometheus format.",
    answers: "text/plain; version=0.0.4; charset=utf-8",
  },
  {
    verb: "GET",
    path: "/openapi.json",
    summary: "These paths as an OpenAPI 3.1 document.",
    answers: "application/json",
  },
  {
    verb: "GET",
    path: "/docs",
    summary: "The reference of this protocol as one page.",
    answers: "text/html; charset=utf-8",
  },
];
