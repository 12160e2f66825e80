import { nextTry, retryWindowMs } from "../core/restart-policy.ts";

export interface RetryOptions {
  /** Tries again. */
  readonly again: () => void;
  /** Whether a push waits, which removes the limit on tries. */
  readonly pushWaits: () => boolean;
  /** Milliseconds until a try is allowed; 0: now. Default: always now. */
  readonly admit?: (() => number) | undefined;
  /** A try became due, or is not due any more. */
  readonly onChange?: () => void;
}

/** The state of retries after failures. */
export interface RetryFacts {
  /** Within the last ten minutes. */
  readonly failures: number;
  /** Time of the next try (Unix milliseconds); absent if none is planned. */
  readonly nextAt?: number;
}

/** Tries again after failures, with growing delays. Its timer keeps no process alive. */
export class Retry {
  readonly #options: RetryOptions;
  #failures: number[] = [];
  #timer: NodeJS.Timeout | undefined;
  #nextAt: number | undefined;
  #closed = false;

  constructor(options: RetryOptions) {
    this.#options = options;
  }

  /** Whether a try is scheduled already, so that a failure before it does not count. */
  get isDue(): boolean {
    return this.#timer !== undefined;
  }

  /** Undefined if there was no recent failure. */
  facts(now = performance.now()): RetryFacts | undefined {
    if (this.#failures.length === 0 && this.#nextAt === undefined) return undefined;
    const failures = this.#failures.filter((at) => at > now - retryWindowMs).length;
    if (failures === 0 && this.#nextAt === undefined) return undefined;
    return { failures, ...(this.#nextAt === undefined ? {} : { nextAt: this.#nextAt }) };
  }

  /** Records a failure. While a try is scheduled, nothing changes. */
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
      // With jitter, so that not all sessions of a daemon retry at once.
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
