import type { Logger } from "pino";
import { WireError } from "../../protocol/errors.ts";
import type { RpcResponse } from "../../protocol/wire.ts";

/** An answer as text. A result that cannot be written (a cycle, nested too deep) becomes an error of its own call. */
export function answerText(answer: RpcResponse | readonly RpcResponse[], log: Logger): string {
  return isBatch(answer) ? `[${answer.map((one) => textOf(one, log)).join(",")}]` : textOf(answer, log);
}

function textOf(response: RpcResponse, log: Logger): string {
  try {
    return JSON.stringify(response);
  } catch (error) {
    log.error({ err: error }, "a result could not be written as JSON");
    const { code, message, data } = new WireError("internal_error", "The result could not be written as JSON.");
    return JSON.stringify({ jsonrpc: "2.0", id: response.id, error: { code, message, data } } satisfies RpcResponse);
  }
}

function isBatch(answer: RpcResponse | readonly RpcResponse[]): answer is readonly RpcResponse[] {
  return Array.isArray(answer);
}
