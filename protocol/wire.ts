/** The version of this protocol. It grows by one when a client written for the version before would break. */
export const PROTOCOL_VERSION = 1;

/** Path of the WebSocket endpoint. */
export const WEBSOCKET_PATH = "/v1/ws";

/** The WebSocket subprotocol that other hosts of pi use, with a few methods for one session. */
export const COMPAT_SUBPROTOCOL = "pi.rpc.v0";

/** Path of its endpoint, before the session's id. */
export const COMPAT_PATH = "/v0/sessions/";

/** Path of the WebSocket endpoint for editors, which speak the Agent Client Protocol. */
export const ACP_PATH = "/acp";

/** The WebSocket subprotocol that the daemon selects there. Offering it is optional. */
export const ACP_SUBPROTOCOL = "pi-rpcd.acp.v1";

/** Path of JSON-RPC over HTTP. */
export const RPC_PATH = "/v1/rpc";

/** Path of the liveness check, the one route that needs no token. */
export const HEALTH_PATH = "/healthz";

/** Path of the daemon's metrics in Prometheus format. */
export const METRICS_PATH = "/metrics";

/** The WebSocket subprotocol that the daemon selects. Offering it is optional. */
export const WEBSOCKET_SUBPROTOCOL = "pi-rpcd.v1";

/**
 * A client that cannot set headers (a browser) offers `pi-rpcd.token.<token>` in addition to {@link
 * WEBSOCKET_SUBPROTOCOL}; the daemon reads the token from it and never selects it.
 */
export const TOKEN_SUBPROTOCOL_PREFIX = "pi-rpcd.token.";

/** The notification `{id}` that cancels a call of the same connection. It is not a method, and is never answered. */
export const CANCEL_METHOD = "$/cancelRequest";

/** The id of a JSON-RPC request. */
export type RpcId = string | number | null;

export interface RpcRequest {
  readonly jsonrpc: "2.0";
  readonly method: string;
  readonly params?: unknown;
  /** Absent in a notification, which is never answered. */
  readonly id?: RpcId;
}

export interface RpcErrorObject {
  readonly code: number;
  readonly message: string;
  readonly data?: unknown;
}

export interface RpcSuccess {
  readonly jsonrpc: "2.0";
  readonly id: RpcId;
  readonly result: unknown;
}

export interface RpcFailure {
  readonly jsonrpc: "2.0";
  readonly id: RpcId;
  readonly error: RpcErrorObject;
}

export type RpcResponse = RpcSuccess | RpcFailure;
