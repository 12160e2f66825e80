import { type ErrorName, errorCatalogue, errorNameOf, WireError } from "../protocol/errors.ts";
import { isRecord } from "../protocol/objects.ts";
import type { RpcErrorObject } from "../protocol/wire.ts";
import { ConnectionFailedError, UnauthorizedError, UnknownDaemonError } from "./local-errors.ts";

/** Turns the error object of a JSON-RPC answer into the error that callers catch. */
export function daemonError(error: RpcErrorObject): WireError | UnknownDaemonError {
  const { name: given, retryable: _, ...details } = isRecord(error.data) ? error.data : {};
  const name = typeof given === "string" && Object.hasOwn(errorCatalogue, given) ? given : errorNameOf(error.code);
  if (name === undefined || errorCatalogue[name as ErrorName].code !== error.code) return new UnknownDaemonError(error);
  return new WireError(name as ErrorName, error.message, details);
}

/** Whether a value has the shape of a JSON-RPC error object. */
export function isErrorObject(value: unknown): value is RpcErrorObject {
  return isRecord(value) && typeof value["code"] === "number" && typeof value["message"] === "string";
}

export interface RefusedAnswer {
  /** The address, for the message. */
  readonly where: string;
  readonly sentToken: boolean;
  readonly status: number | undefined;
  readonly body: string;
}

const maxQuotedChars = 300;

/** Turns a failed HTTP answer into an error: a rejected token, an error of the daemon, or an answer of another program. */
export function refusal({ where, sentToken, status, body }: RefusedAnswer): Error {
  if (status === 401) return new UnauthorizedError(where, sentToken);
  const answer = parse(body);
  if (isErrorObject(answer?.error)) return daemonError(answer.error);
  const detail = answer?.detail ?? answer?.title ?? answer?.message ?? body;
  const quoted = typeof detail === "string" && detail !== "" ? `: ${detail.slice(0, maxQuotedChars)}` : "";
  return new ConnectionFailedError(`${where} answered with HTTP status ${status ?? "unknown"}${quoted}`, {
    ...(status !== undefined && { status }),
  });
}

function parse(body: string): {
  readonly error?: unknown;
  readonly detail?: unknown;
  readonly title?: unknown;
  readonly message?: unknown;
} | null {
  try {
    return JSON.parse(body);
  } catch {
    return null;
  }
}
