import type { Logger } from "pino";
import { WireError } from "../../protocol/errors.ts";
import type { RpcResponse } from "../../protocol/wire.ts";
import { errorObject } from "./errors.ts";

/** JSON, or its UTF-8 in pieces. Answers with the same result share the memory of its pieces. */
export type Text = string | readonly Buffer[];

/** Length in UTF-8. */
export function textBytes(text: Text): number {
  return typeof text === "string" ? Buffer.byteLength(text) : text.reduce((bytes, { length }) => bytes + length, 0);
}

export function wholeText(text: Text): string {
  return typeof text === "string" ? text : Buffer.concat(text).toString("utf8");
}

/** Answers up to this length are sent even above a limit: an answer may be the only record of an effect. */
export const smallAnswerBytes = 16 * 1024;

/** The JSON of results and batches, once it was written. */
const texts = new WeakMap<object, readonly Buffer[]>();

/** Keeps the JSON of a result that is frequent and never changes, or that `JSON.stringify` cannot write. */
export function keepText<T extends object>(value: T, text: string = JSON.stringify(value)): T {
  texts.set(value, [Buffer.from(text)]);
  return value;
}

/** A result as JSON. Throws if it has none. */
export function resultText(result: unknown): Text {
  return kept(result) ?? JSON.stringify(result ?? null);
}

/** An answer as text. A result without JSON (a cycle, nested too deep) becomes an error of its call. */
export function answerText(answer: RpcResponse | readonly RpcResponse[], log: Logger): Text {
  const known = kept(answer);
  if (known !== undefined) return known;
  return isBatch(answer) ? joined(answer.map((one) => textOf(one, log))) : textOf(answer, log);
}

/** Keeps the text of the answers to a batch, for {@link answerText}. */
export function keepBatch(answers: readonly RpcResponse[], written: readonly Text[]): readonly RpcResponse[] {
  texts.set(answers, joined(written));
  return answers;
}

/** Like {@link answerText}, for one answer. */
export function textOf(response: RpcResponse, log: Logger): Text {
  try {
    const { id, result } = response as { readonly id: unknown; readonly result?: unknown };
    const known = kept(result);
    return known === undefined
      ? JSON.stringify(response)
      : [Buffer.from(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":`), ...known, Buffer.from("}")];
  } catch (error) {
    log.error({ err: error }, "a result has no JSON");
    const failed = new WireError("internal_error", "The result could not be written as JSON.");
    return JSON.stringify({ jsonrpc: "2.0", id: response.id, error: errorObject(failed) });
  }
}

function kept(value: unknown): readonly Buffer[] | undefined {
  return typeof value === "object" && value !== null ? texts.get(value) : undefined;
}

/** Not joined into one buffer: copying megabytes costs time and memory. */
function joined(written: readonly Text[]): readonly Buffer[] {
  const comma = Buffer.from(",");
  const pieces = written.flatMap((text) => [comma, ...(typeof text === "string" ? [Buffer.from(text)] : text)]);
  return [Buffer.from("["), ...pieces.slice(1), Buffer.from("]")];
}

function isBatch(answer: RpcResponse | readonly RpcResponse[]): answer is readonly RpcResponse[] {
  return Array.isArray(answer);
}
