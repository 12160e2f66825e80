/** Counts durations in buckets, for the lifetime of the daemon. */
export class Histogram {
  /** Upper bounds in seconds, ascending. Longer durations are in `count` only. */
  readonly bounds: readonly number[];
  readonly #counts: number[];
  #count = 0;
  #sum = 0;

  constructor(bounds: readonly number[]) {
    this.bounds = bounds;
    this.#counts = bounds.map(() => 0);
  }

  observe(seconds: number): void {
    this.#count += 1;
    this.#sum += seconds;
    const index = this.bounds.findIndex((bound) => seconds <= bound);
    if (index !== -1) this.#counts[index] = (this.#counts[index] ?? 0) + 1;
  }

  /** Cumulative counts per bound, the total count, and the sum. */
  get state(): HistogramState {
    let sum = 0;
    const buckets = this.#counts.map((count, index) => {
      sum += count;
      return { le: this.bounds[index] as number, count: sum };
    });
    return { buckets, count: this.#count, sum: this.#sum };
  }
}

export interface HistogramState {
  readonly buckets: readonly { readonly le: number; readonly count: number }[];
  readonly count: number;
  /** In seconds. */
  readonly sum: number;
}
