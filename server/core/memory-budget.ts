/** Something that holds memory which it can give up from the oldest on. */
export interface Holder {
  readonly bytes: number;
  /** Gives up some; what is newest only with `all`. Gives whether there was any to give up. */
  forgetOldest(all: boolean): boolean;
}

/** A bound for what many hold together. Whoever holds most gives up first. */
export class MemoryBudget {
  readonly #maxBytes: number;
  readonly #holders = new Set<Holder>();
  /** What all of them hold; kept by themselves. */
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
      // What is left is what this one has newest.
      if (largest === undefined) return;
    }
  }

  /** Called by a holder that holds nothing any more. */
  leave(holder: Holder): void {
    this.#holders.delete(holder);
  }
}
