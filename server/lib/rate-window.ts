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
    if (this.#isOver(nowMs)) {
      this.#startedAt = nowMs;
      this.#count = 0;
    }
    this.#count += 1;
    return this.#count <= this.#options.max;
  }

  /** Whether one more would be over the bound. */
  isFull(nowMs: number): boolean {
    return !this.#isOver(nowMs) && this.#count >= this.#options.max;
  }

  /** Until the next window can begin. */
  restMs(nowMs: number): number {
    return Math.max(0, this.#startedAt + this.#options.windowMs - nowMs);
  }

  #isOver(nowMs: number): boolean {
    return nowMs - this.#startedAt >= this.#options.windowMs || nowMs < this.#startedAt;
  }
}
