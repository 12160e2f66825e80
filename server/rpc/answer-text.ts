import type { Logger } from "pino";
import { WireError } from "../../protocol/errors.ts";
import type { RpcResponse } from "../../protocol/wire.ts";
import { errorObject } from "./errors.ts";

/** JSON, or its UTF-8 in pieces, of which those that many answers have are the same memory. */
export type Text = string | readonly Buffer[];

/** Of its UTF-8. */
export function textBytes(text: Text): number {
  return typeof text === "string" ? Buffer.byteLength(text) : text.reduce((bytes, { length }) => bytes + length, 0);
}

/** As one string. */
export function wholeText(text: Text): string {
  return typeof text === "string" ? text : Buffer.concat(text).toString("utf8");
}

/** An answer of at most so much is given whatever bound is reached: it may be all that tells of an effect. */
export const smallAnswerBytes = 16 * 1024;

/** What was written already. */
const texts = new WeakMap<object, readonly Buffer[]>();

/** Keeps the JSON of a result that never changes and is given often, or that `JSON.stringify` cannot write. */
export function keepText<T extends object>(value: T, text: string = JSON.stringify(value)): T {
  texts.set(value, [Buffer.from(text)]);
  return value;
}

/** A result as JSON. Throws where it cannot be written. */
export function resultText(result: unknown): Text {
  return kept(result) ?? JSON.stringify(result ?? null);
}

/** An answer as text. A result that cannot be written (a cycle, nested too deep) becomes an error of its own call. */
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

/** One answer as text, as {@link answerText}. */
export function textOf(response: RpcResponse, log: Logger): Text {
  try {
    const { id, result } = response as { readonly id: unknown; readonly result?: unknown };
    const known = kept(result);
    return known === undefined
      ? JSON.stringify(response)
      : [Buffer.from(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":`), ...known, Buffer.from("}")];
  } catch (error) {
    log.error({ err: error }, "a result could not be written as JSON");
    const failed = new WireError("internal_error", "The result could not be written as JSON.");
    return JSON.stringify({ jsonrpc: "2.0", id: response.id, error: errorObject(failed) });
  }
}

function kept(value: unknown): readonly Buffer[] | undefined {
  return typeof value === "object" && value !== null ? texts.get(value) : undefined;
}

/** In pieces: to join megabytes takes the daemon's time, and memory that the collector looks for. */
function joined(written: readonly Text[]): readonly Buffer[] {
  const comma = Buffer.from(",");
  const pieces = written.flatMap((text) => [comma, ...(typeof text === "string" ? [Buffer.from(text)] : text)]);
  return [Buffer.from("["), ...pieces.slice(1), Buffer.from("]")];
}

function isBatch(answer: RpcResponse | readonly RpcResponse[]): answer is readonly RpcResponse[] {
  return Array.isArray(answer);
}
