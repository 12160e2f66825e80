export interface RateWindowOptions {
  readonly max: number;
  readonly windowMs: number;
}

/** Counts what happens in fixed windows of time. Two numbers, however much happens. */
export class RateWindow {
  readonly #options: RateWindowOptions;
  #startedAt = Number.NEGATIVE_INFINITY;
  #count = 0;

  constructor(options: RateWindowOptions) {
    this.#options = options;
  }

  /** Counts one. Whether it is within the bound. */
  add(nowMs: number): boolean {
    const { max, windowMs } = this.#options;
    if (nowMs - this.#startedAt >= windowMs || nowMs < this.#startedAt) {
      this.#startedAt = nowMs;
      this.#count = 0;
    }
    this.#count += 1;
    return this.#count <= max;
  }

  /** Until the next window can begin. */
  restMs(nowMs: number): number {
    return Math.max(0, this.#startedAt + this.#options.windowMs - nowMs);
  }
}
