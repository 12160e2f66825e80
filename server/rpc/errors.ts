import type { Logger } from "pino";
import { type ErrorData, WireError } from "../../protocol/errors.ts";
import type { RpcErrorObject } from "../../protocol/wire.ts";

/**
 * Turns any thrown value into a wire error. Everything but a `WireError` becomes an `internal_error` without details for
 * the client; the log gets the details, with `context`.
 */
export function toWireError(error: unknown, log: Logger, context: Readonly<Record<string, unknown>> = {}): WireError {
  if (error instanceof WireError) {
    if (error.kind === "internal_error") log.error({ ...context, err: error }, "a call failed");
    return error;
  }
  log.error({ ...context, err: error }, "a call failed unexpectedly");
  return new WireError("internal_error", "The daemon failed; its log has the cause.", {}, { cause: error });
}

export function errorObject(error: WireError): RpcErrorObject & { readonly data: ErrorData } {
  return { code: error.code, message: error.message, data: error.data };
}
