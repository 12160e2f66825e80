import { nextTry, retryWindowMs } from "../core/restart-policy.ts";

export interface RetryOptions {
  /** Tries again. */
  readonly again: () => void;
  /** Whether a push waits: then it is tried without end. */
  readonly pushWaits: () => boolean;
  /** Milliseconds until a try may be made at all; 0: now. Default: always now. */
  readonly admit?: (() => number) | undefined;
  /** It has become due, or is not any more. */
  readonly onChange?: () => void;
}

/** What is known of tries after failures. */
export interface RetryFacts {
  /** Within the last ten minutes. */
  readonly failures: number;
  /** When the next try is made, in the time of day; absent where none is. */
  readonly nextAt?: number;
}

/** Tries again after failures, less and less often. Its timer keeps no process alive. */
export class Retry {
  readonly #options: RetryOptions;
  #failures: number[] = [];
  #timer: NodeJS.Timeout | undefined;
  #nextAt: number | undefined;
  #closed = false;

  constructor(options: RetryOptions) {
    this.#options = options;
  }

  /** Whether a try is due already, so that a failure before it is none of its own. */
  get isDue(): boolean {
    return this.#timer !== undefined;
  }

  /** Absent where nothing has failed lately. */
  facts(now = performance.now()): RetryFacts | undefined {
    const failures = this.#failures.filter((at) => at > now - retryWindowMs).length;
    if (failures === 0 && this.#nextAt === undefined) return undefined;
    return { failures, ...(this.#nextAt === undefined ? {} : { nextAt: this.#nextAt }) };
  }

  /** It has failed once more. While a try is due already, nothing changes. */
  failed(now = performance.now()): void {
    if (this.#closed || this.#timer !== undefined) return;
    this.#failures = [...this.#failures.filter((at) => at > now - retryWindowMs), now];
    const next = nextTry(this.#failures.length, this.#options.pushWaits());
    if (next.kind === "again") this.#schedule(next.delayMs);
    this.#options.onChange?.();
  }

  close(): void {
    this.#closed = true;
    this.#clear();
  }

  #schedule(delayMs: number): void {
    this.#nextAt = Date.now() + delayMs;
    this.#timer = setTimeout(() => {
      const wait = this.#options.admit?.() ?? 0;
      // A little apart, so that not all sessions of a daemon ask again at once.
      if (wait > 0) return this.#schedule(Math.ceil(wait * (1 + Math.random())));
      this.#clear();
      this.#options.again();
    }, delayMs).unref();
  }

  #clear(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#nextAt = undefined;
  }
}
