/** Counts durations by how long they were, for as long as the daemon lives. */
export class Histogram {
  /** Upper bounds, in seconds, smallest first. What is longer is in `count` alone. */
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

  /** How many were no longer than each bound, and of all: how many, and how long together. */
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
