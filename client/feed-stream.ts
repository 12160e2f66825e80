import { AsyncBuffer } from "./async-buffer.ts";
import { BufferOverflowError } from "./local-errors.ts";
import { errorOf, type FeedEnd } from "./session-feed.ts";

export interface FeedStreamOptions {
  /** How many items wait for a slow reader. */
  readonly maxItems: number;
  /** Bound of the sum of the items' sizes. Default: no bound. */
  readonly maxSize?: number;
  /** These limits by the names of their options, for the message of `BufferOverflowError`. */
  readonly limits: string;
  /** Ends the stream at once by throwing the signal's reason. */
  readonly signal: AbortSignal | undefined;
}

/**
 * One reader's stream of a feed: a bounded buffer between the feed, which cannot wait, and the reader that iterates.
 * A subclass joins the feed and pushes what the reader asked for.
 */
export abstract class FeedStream<Item, Start = void> implements AsyncIterableIterator<Item, undefined> {
  readonly #buffer: AsyncBuffer<Item>;
  readonly #limits: string;
  readonly #signal: AbortSignal | undefined;
  readonly #ready = Promise.withResolvers<Start>();
  #leave: () => void = () => {};

  protected constructor({ maxItems, maxSize = Number.POSITIVE_INFINITY, limits, signal }: FeedStreamOptions) {
    this.#buffer = new AsyncBuffer({ maxItems, maxSize });
    this.#limits = limits;
    this.#signal = signal;
    this.#ready.promise.catch(() => {});
  }

  /** Resolves when the daemon has confirmed the subscription; the stream has everything that happens after that moment. */
  get ready(): Promise<Start> {
    return this.#ready.promise;
  }

  next(): Promise<IteratorResult<Item, undefined>> {
    return this.#buffer.next();
  }

  /** Ends the stream and drops what is buffered. The subscription ends with its last reader. */
  async return(): Promise<IteratorReturnResult<undefined>> {
    this.#stop(new Error("The stream was closed before its subscription began."));
    this.#buffer.discard();
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.return();
  }

  /** Joins the feed, unless the signal is aborted already; `leave` is called when the stream ends. */
  protected follow(join: () => void, leave: () => void): void {
    this.#leave = leave;
    if (this.#signal?.aborted === true) {
      this.#abort();
      return;
    }
    this.#signal?.addEventListener("abort", this.#abort, { once: true });
    join();
  }

  protected begin(start: Start): void {
    this.#ready.resolve(start);
  }

  /** Buffers an item for the reader. If a limit forbids it, the stream ends after what is buffered and this is false. */
  protected push(item: Item, size = 0, resumeAfter?: number): boolean {
    if (this.#buffer.push(item, size)) return true;
    this.end(new BufferOverflowError(this.#limits, resumeAfter));
    return false;
  }

  /** Ends the stream after what is buffered, with an error or without. The first end counts. */
  protected end(error?: unknown): void {
    this.#stop(error);
    this.#buffer.end(error);
  }

  /** The feed has ended. Only a failure is an error for the reader. */
  protected feedEnded(end: FeedEnd): void {
    this.#stop(errorOf(end));
    this.#buffer.end(end.kind === "failed" ? end.error : undefined);
  }

  protected get ended(): boolean {
    return this.#buffer.ended;
  }

  readonly #abort = (): void => {
    const reason: unknown = this.#signal?.reason;
    this.#stop(reason);
    this.#buffer.discard(reason);
  };

  #stop(reason: unknown): void {
    this.#signal?.removeEventListener("abort", this.#abort);
    this.#leave();
    this.#ready.reject(reason);
  }
}
