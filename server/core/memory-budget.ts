/** A holder of memory that can free its oldest part. */
export interface Holder {
  readonly bytes: number;
  /** Frees some memory; the newest part only with `all`. Returns whether there was any. */
  forgetOldest(all: boolean): boolean;
}

/** A shared memory limit. The largest holder frees memory first. */
export class MemoryBudget {
  readonly #maxBytes: number;
  readonly #holders = new Set<Holder>();
  /** Total of all holders, which they update themselves. */
  bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Called by a holder that has grown. */
  enforce(holder: Holder): void {
    this.#holders.add(holder);
    while (this.bytes > this.#maxBytes) {
      const largest = [...this.#holders]
        .sort((a, b) => b.bytes - a.bytes)
        .find((one) => one.forgetOldest(one !== holder));
      // Only the newest part of this holder is left.
      if (largest === undefined) return;
    }
  }

  /** Called by a holder that has freed everything. */
  leave(holder: Holder): void {
    this.#holders.delete(holder);
  }
}
