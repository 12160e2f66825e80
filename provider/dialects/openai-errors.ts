import { statusMessage } from "../dialect.ts";
import type { JsonObject } from "../json.ts";
import type { ErrorReply } from "../reply.ts";

/** The `error` of both of OpenAI's APIs. */
export function errorObject({ status, message, type, code }: ErrorReply): JsonObject {
  return {
    message: message ?? statusMessage(status),
    type: type ?? errorType(status),
    param: null,
    code: code ?? errorCode(status),
  };
}

function errorType(status: number): string {
  if (status === 429) return "rate_limit_error";
  if (status === 529) return "overloaded_error";
  return status >= 500 ? "server_error" : "invalid_request_error";
}

function errorCode(status: number): string | null {
  if (status === 401) return "invalid_api_key";
  if (status === 404) return "model_not_found";
  return status === 429 ? "rate_limit_exceeded" : null;
}
