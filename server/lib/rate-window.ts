export interface RateWindowOptions {
  readonly max: number;
  readonly windowMs: number;
}

/** Counts events in fixed windows of time, with constant memory. */
export class RateWindow {
  readonly #options: RateWindowOptions;
  #startedAt = Number.NEGATIVE_INFINITY;
  #count = 0;

  constructor(options: RateWindowOptions) {
    this.#options = options;
  }

  /** Counts one event. Returns whether it is within the limit. */
  add(nowMs: number): boolean {
    if (this.#isOver(nowMs)) {
      this.#startedAt = nowMs;
      this.#count = 0;
    }
    this.#count += 1;
    return this.#count <= this.#options.max;
  }

  /** Whether one more event would exceed the limit. */
  isFull(nowMs: number): boolean {
    return !this.#isOver(nowMs) && this.#count >= this.#options.max;
  }

  /** Time until the next window. */
  restMs(nowMs: number): number {
    return Math.max(0, this.#startedAt + this.#options.windowMs - nowMs);
  }

  #isOver(nowMs: number): boolean {
    return nowMs - this.#startedAt >= this.#options.windowMs || nowMs < this.#startedAt;
  }
}
