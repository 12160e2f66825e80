import type { Logger } from "pino";
import { WireError } from "../../protocol/errors.ts";
import type { RpcResponse } from "../../protocol/wire.ts";

/** An answer as text. A result that cannot be written (nested too deep) becomes an error of the same call. */
export function answerText(answer: RpcResponse | readonly RpcResponse[], log: Logger): string {
  try {
    return JSON.stringify(answer);
  } catch (error) {
    log.error({ err: error }, "a result could not be written as JSON");
    const { code, data } = new WireError("internal_error", "");
    const message = "The result could not be written as JSON.";
    const failed = (id: RpcResponse["id"]): RpcResponse => ({ jsonrpc: "2.0", id, error: { code, message, data } });
    return JSON.stringify(Array.isArray(answer) ? answer.map(({ id }) => failed(id)) : failed((answer as RpcResponse).id));
  }
}
