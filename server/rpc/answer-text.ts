import type { Logger } from "pino";
import { WireError } from "../../protocol/errors.ts";
import type { RpcResponse } from "../../protocol/wire.ts";

export interface BatchLimits {
  /** The answers of one batch together. One alone may be longer; a small one is always given. */
  readonly maxBatchAnswerBytes: number;
}

/** An answer of at most so much is given whatever bound is reached: it may be all that tells of an effect. */
export const smallAnswerBytes = 16 * 1024;

/** How long answers are written in one turn of the event loop. */
const turnMs = 5;

/** What was written already. */
const texts = new WeakMap<object, string>();

/** Keeps the JSON of a result that never changes and is given often. */
export function keepText<T extends object>(value: T): T {
  texts.set(value, JSON.stringify(value));
  return value;
}

/** A result as JSON. Throws where it cannot be written. */
export function resultText(result: unknown): string {
  const kept = typeof result === "object" && result !== null ? texts.get(result) : undefined;
  return kept ?? JSON.stringify(result ?? null);
}

/** An answer as text. A result that cannot be written (a cycle, nested too deep) becomes an error of its own call. */
export function answerText(answer: RpcResponse | readonly RpcResponse[], log: Logger): string {
  const kept = texts.get(answer);
  if (kept !== undefined) return kept;
  return isBatch(answer) ? `[${answer.map((one) => textOf(one, log)).join(",")}]` : textOf(answer, log);
}

/**
 * Writes the answers of a batch with turns of the event loop between them. Resolves with the answers as they are given,
 * and with their text kept for {@link answerText}: those beyond the bound are `too_large`.
 */
export async function writtenBatch(
  answers: readonly RpcResponse[],
  { maxBatchAnswerBytes }: BatchLimits,
  log: Logger,
): Promise<readonly RpcResponse[]> {
  const given: RpcResponse[] = [];
  const written: string[] = [];
  let bytes = 0;
  let since = performance.now();
  for (const answer of answers) {
    if (performance.now() - since > turnMs) {
      await new Promise((resolve) => setImmediate(resolve));
      since = performance.now();
    }
    let text = textOf(answer, log);
    const own = Buffer.byteLength(text);
    const isTooMuch = own > smallAnswerBytes && bytes > 0 && bytes + own > maxBatchAnswerBytes;
    if (isTooMuch) {
      const refused = beyond(answer, maxBatchAnswerBytes);
      text = JSON.stringify(refused);
      given.push(refused);
    } else {
      given.push(answer);
      bytes += own;
    }
    written.push(text);
  }
  texts.set(given, `[${written.join(",")}]`);
  return given;
}

function beyond({ id }: RpcResponse, maxBatchAnswerBytes: number): RpcResponse {
  const why = `The call was made, but the answers of its batch are longer than ${maxBatchAnswerBytes} bytes: ask alone.`;
  return failed(id, new WireError("too_large", why, { maxBatchAnswerBytes }));
}

function textOf(response: RpcResponse, log: Logger): string {
  try {
    const { id, result } = response as { readonly id: unknown; readonly result?: unknown };
    const kept = typeof result === "object" && result !== null ? texts.get(result) : undefined;
    return kept === undefined
      ? JSON.stringify(response)
      : `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${kept}}`;
  } catch (error) {
    log.error({ err: error }, "a result could not be written as JSON");
    return JSON.stringify(
      failed(response.id, new WireError("internal_error", "The result could not be written as JSON.")),
    );
  }
}

function failed(id: RpcResponse["id"], { code, message, data }: WireError): RpcResponse {
  return { jsonrpc: "2.0", id, error: { code, message, data } };
}

function isBatch(answer: RpcResponse | readonly RpcResponse[]): answer is readonly RpcResponse[] {
  return Array.isArray(answer);
}
