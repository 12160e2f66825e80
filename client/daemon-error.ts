import { type ErrorName, errorCatalogue, errorNameOf, WireError } from "../protocol/errors.ts";
import type { RpcErrorObject } from "../protocol/wire.ts";
import { UnknownDaemonError } from "./local-errors.ts";

/** The error object of a JSON-RPC answer as what callers catch: a `WireError`, or unknown to this client's catalogue. */
export function daemonError(error: RpcErrorObject): WireError | UnknownDaemonError {
  const { name: given, retryable: _, ...details } = isObject(error.data) ? error.data : {};
  const name = typeof given === "string" && Object.hasOwn(errorCatalogue, given) ? given : errorNameOf(error.code);
  if (name === undefined || errorCatalogue[name as ErrorName].code !== error.code) return new UnknownDaemonError(error);
  return new WireError(name as ErrorName, error.message, details);
}

/** Whether a value has the shape of a JSON-RPC error object. */
export function isErrorObject(value: unknown): value is RpcErrorObject {
  return isObject(value) && typeof value["code"] === "number" && typeof value["message"] === "string";
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
