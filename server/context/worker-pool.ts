import { extname } from "node:path";
import type { Logger } from "pino";
import { type ErrorName, WireError } from "../../protocol/errors.ts";
import { Gate } from "../lib/gate.ts";
import { JobThreads, ThreadEndError } from "../lib/job-thread.ts";
import { maxPartsIn } from "./json-parts.ts";
import { bytesIn, type Exported, type Outcome, type Prepared, type Work } from "./work.ts";

export interface WorkerPoolLimits {
  /** A larger document is processed by another thread. */
  readonly maxOwnBytes: number;
  readonly maxThreads: number;
  /** Further work is `overloaded`. */
  readonly maxWaiting: number;
  readonly workTimeoutMs: number;
  readonly maxThreadMiB: number;
}

/** The input of a thread. */
export interface ThreadOrder {
  readonly work: Work;
  /** The input of `perform`. */
  readonly maxParts: number;
}

/** The result of a thread. */
export type ThreadAnswer =
  | { readonly kind: "done"; readonly outcome: Prepared | Exported }
  | {
      readonly kind: "refused";
      readonly name: ErrorName;
      readonly message: string;
      readonly data: Readonly<Record<string, unknown>>;
    }
  | { readonly kind: "failed"; readonly name: string; readonly frames: readonly string[] };

/**
 * Processes documents: small ones immediately, others in a thread of their own, because 30 MiB take about a second in
 * which the daemon would not respond.
 */
export class WorkerPool {
  readonly #limits: WorkerPoolLimits;
  readonly #log: Logger;
  readonly #gate: Gate;
  readonly #threads: JobThreads;
  #waiting = 0;

  constructor(limits: WorkerPoolLimits, log: Logger) {
    this.#limits = limits;
    this.#log = log;
    this.#gate = new Gate(limits.maxThreads, limits.workTimeoutMs);
    this.#threads = new JobThreads({
      entry: new URL(`./work-thread${extname(import.meta.filename)}`, import.meta.url),
      name: "context",
      maxHeapMiB: limits.maxThreadMiB,
      timeoutMs: limits.workTimeoutMs,
    });
  }

  /**
   * Transfers the bytes of the work. Throws the errors of contexts, `overloaded`, `shutting_down`, and
   * `context_too_large` if time or memory run out.
   */
  async do<W extends Work>(work: W, signal: AbortSignal): Promise<Outcome<W>> {
    const { maxOwnBytes, maxWaiting } = this.#limits;
    signal.throwIfAborted();
    const bytes = bytesIn(work);
    if (lengthOf(bytes) <= maxOwnBytes) return await this.#own(work);
    if (this.#waiting >= maxWaiting) {
      throw new WireError("overloaded", "Too many contexts are being prepared.", { retryAfterMs: 1_000 });
    }
    this.#waiting += 1;
    try {
      return (await this.#gate.pass(() => this.#inThread(work, bytes, signal), { signal })) as Outcome<W>;
    } finally {
      this.#waiting -= 1;
    }
  }

  /** Cancels work in progress. */
  async close(): Promise<void> {
    await this.#threads.close();
  }

  async #own<W extends Work>(work: W): Promise<Outcome<W>> {
    // Many daemons never need it.
    const { perform } = await import("./perform.ts");
    try {
      return perform(work);
    } catch (error) {
      if (error instanceof WireError) throw error;
      const { name, stack = "" } = error instanceof Error ? error : new Error();
      throw this.#failed(name, framesOf(stack));
    }
  }

  async #inThread(work: Work, bytes: readonly Uint8Array[], signal: AbortSignal): Promise<unknown> {
    const { workTimeoutMs, maxThreadMiB } = this.#limits;
    const order: ThreadOrder = { work, maxParts: maxPartsIn(maxThreadMiB * 1024 * 1024, lengthOf(bytes)) };
    const moved = bytes.filter(wholly).map(({ buffer }) => buffer as ArrayBuffer);
    const answer = await this.#threads.answerTo<ThreadAnswer>(order, signal, moved).catch((error: unknown) => {
      if (!(error instanceof ThreadEndError)) throw error;
      if (error.end === "ended") throw new WireError("shutting_down", "The daemon is shutting down.");
      if (error.end === "failed") throw this.#failed(error.errorName, []);
      throw tooMuch(error.end === "late" ? `more than ${workTimeoutMs / 1_000} s` : "too much memory");
    });
    if (answer.kind === "done") return answer.outcome;
    if (answer.kind === "failed") throw this.#failed(answer.name, answer.frames);
    const { name: _name, retryable: _retryable, ...details } = answer.data;
    throw new WireError(answer.name, answer.message, details);
  }

  /** The text of an unexpected error is neither logged nor returned, because it may quote the document. */
  #failed(name: string, frames: readonly string[]): WireError {
    this.#log.error({ name, frames: frames.slice(0, 8) }, "cannot process a context");
    return new WireError("internal_error", "The daemon failed; its log has the cause.");
  }
}

function lengthOf(all: readonly Uint8Array[]): number {
  return all.reduce((sum, { byteLength }) => sum + byteLength, 0);
}

function framesOf(stack: string): string[] {
  return stack.split("\n").filter((line) => /^\s+at /.test(line));
}

function tooMuch(what: string): WireError {
  return new WireError("context_too_large", `The context takes ${what} to be prepared.`, { limit: "work" });
}

/** Whether its memory is not shared. */
function wholly(bytes: Uint8Array): boolean {
  return bytes.byteOffset === 0 && bytes.byteLength === bytes.buffer.byteLength;
}
