import type { Logger } from "pino";
import { WireError } from "../../protocol/errors.ts";
import { isReading } from "../../protocol/method-row.ts";
import { isMethodName, methods } from "../../protocol/methods.ts";
import type { RpcResponse } from "../../protocol/wire.ts";
import { keepBatch, smallAnswerBytes, type Text, textBytes, textOf } from "./answer-text.ts";
import type { OpenCall } from "./call.ts";
import { errorObject } from "./errors.ts";
import type { Grant } from "./grant.ts";
import type { Quota } from "./quota.ts";

export interface BatchLimits {
  /** All answers of one batch. A single one may be longer; a small one is always sent. */
  readonly maxBatchAnswerBytes: number;
  /** All answers of incomplete batches. */
  readonly maxBatchBytes: number;
  /** The same for one named token. */
  readonly maxBatchBytesPerToken: number;
}

export interface BatchAnswersOptions {
  /** Number of requests in the batch. */
  readonly length: number;
  readonly limits: BatchLimits;
  /** The budget of all batches. */
  readonly quota: Quota;
  readonly grant: Grant | undefined;
  readonly log: Logger;
}

/** Texts above this size are kept as bytes. Below it the buffer would cost more than the string. */
const minBytesOutsideHeap = 1_024;

interface Place {
  readonly method: string;
  readonly call: OpenCall;
}

/**
 * The answers to one batch. Each is written when it arrives, within the limits of the batch and of its token. An answer
 * above them is replaced by an error. If the method only reads and an earlier answer shows the length, it is not even
 * built.
 */
export class BatchAnswers {
  readonly #options: BatchAnswersOptions;
  readonly #answers: RpcResponse[];
  readonly #texts: Text[];
  /** The open calls, by their place in the batch. */
  readonly #calls = new Map<number, Place>();
  /** Length of the newest answer of a method, if it was not small. */
  readonly #lengths = new Map<string, number>();
  /** Methods that get no further answer in this batch. */
  readonly #refused = new Map<string, WireError>();
  #bytes = 0;

  constructor(options: BatchAnswersOptions) {
    this.#options = options;
    this.#answers = new Array(options.length);
    this.#texts = new Array(options.length);
  }

  /** Why a call is not made: its answer would exceed a limit. */
  refusal(method: string): WireError | undefined {
    if (!reads(method)) return undefined;
    const known = this.#refused.get(method);
    const length = this.#lengths.get(method);
    if (known !== undefined || length === undefined) return known;
    const full = this.#noRoom(length);
    // A batch that is full stays full.
    if (full?.kind === "too_large") this.#refused.set(method, full);
    return full;
  }

  /** Registers an open call. {@link write} takes its answer. */
  began(place: number, method: string, call: OpenCall): void {
    this.#calls.set(place, { method, call });
  }

  /** Writes an answer, or the error that replaces it. */
  write(place: number, answer: RpcResponse): void {
    const method = this.#calls.get(place)?.method ?? "";
    this.#calls.delete(place);
    const unwanted = "error" in answer ? undefined : this.refusal(method);
    if (unwanted !== undefined) {
      this.#refuse(place, answer, unwanted);
      return;
    }
    const text = textOf(answer, this.#options.log);
    const length = textBytes(text);
    const full = length > smallAnswerBytes ? this.#noRoom(length) : undefined;
    if (length > smallAnswerBytes) this.#lengths.set(method, length);
    if (full === undefined) {
      this.#give(place, answer, text, length);
      return;
    }
    this.#refuse(place, answer, reads(method) ? full : this.#notGiven(full));
    if (reads(method)) this.#end(method, full);
  }

  /** All answers in the order of their requests. Undefined: there are none. */
  all(): readonly RpcResponse[] | undefined {
    const given = this.#answers.filter((answer) => answer !== undefined);
    const texts = this.#texts.filter((text) => text !== undefined);
    return given.length === 0 ? undefined : keepBatch(given, texts);
  }

  /** Returns the memory of the answers to the budget. */
  release(): void {
    this.#options.quota.add(this.#options.grant, -this.#bytes);
    this.#bytes = 0;
  }

  #give(place: number, answer: RpcResponse, text: Text, length: number): void {
    this.#bytes += length;
    this.#options.quota.add(this.#options.grant, length);
    this.#answers[place] = answer;
    // As bytes a waiting text is outside the heap, so that the garbage collector does not copy it.
    this.#texts[place] = typeof text === "string" && length > minBytesOutsideHeap ? [Buffer.from(text)] : text;
  }

  #refuse(place: number, { id }: RpcResponse, error: WireError): void {
    const refused: RpcResponse = { jsonrpc: "2.0", id, error: errorObject(error) };
    const text = JSON.stringify(refused);
    this.#give(place, refused, text, text.length);
  }

  /** Cancels the other calls of the method before they build an answer. Later ones are not made. */
  #end(method: string, error: WireError): void {
    this.#refused.set(method, error);
    for (const other of this.#calls.values()) if (other.method === method) other.call.cancel(error);
  }

  #noRoom(length: number): WireError | undefined {
    const { limits, quota, grant } = this.#options;
    const { maxBatchAnswerBytes } = limits;
    if (this.#bytes === 0 || this.#bytes + length <= maxBatchAnswerBytes) return quota.refusal(grant, length);
    const why = `The answers of the batch are longer than ${maxBatchAnswerBytes} bytes: call this method alone.`;
    return new WireError("too_large", why, { maxBatchAnswerBytes });
  }

  /** For a call that changed something: a client must not repeat it to get the answer. */
  #notGiven({ message }: WireError): WireError {
    const { maxBatchAnswerBytes } = this.#options.limits;
    return new WireError("too_large", `The call was made, but its answer is too large. ${message}`, {
      maxBatchAnswerBytes,
    });
  }
}

function reads(method: string): boolean {
  return isMethodName(method) && isReading(methods[method]);
}
