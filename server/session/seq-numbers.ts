/** Where numbers are reserved, so that none is given twice across daemons. */
export interface SeqReserve {
  /** The highest number that may have been given. */
  readonly reserved: number;
  /** Notes that numbers up to `upTo` may be given. Resolves when that is on disk. */
  reserve(upTo: number): Promise<void>;
  /** Brings to disk, now, what was noted. */
  flush(): void;
}

const block = 16_384;

/**
 * The numbers of a session's log. They only grow, also when a daemon is killed and another goes on: blocks are reserved on
 * disk before a number of them is given, and a new daemon begins behind the last block.
 */
export class SeqNumbers {
  readonly #store: SeqReserve;
  #last: number;
  #reserved: number;
  /** Up to here the reservation is on disk. */
  #durable: number;

  constructor(store: SeqReserve) {
    this.#store = store;
    this.#last = store.reserved;
    this.#reserved = store.reserved;
    this.#durable = store.reserved;
  }

  /** The newest number; where there was none, the one that the first goes behind. */
  get last(): number {
    return this.#last;
  }

  next(): number {
    this.#last += 1;
    if (this.#last > this.#reserved - block / 2) this.#reserveMore();
    if (this.#last > this.#durable) {
      this.#store.flush();
      this.#durable = this.#reserved;
    }
    return this.#last;
  }

  #reserveMore(): void {
    const upTo = this.#last + block;
    this.#reserved = upTo;
    this.#store.reserve(upTo).then(
      () => {
        this.#durable = Math.max(this.#durable, upTo);
      },
      // The store has logged it. The next block is tried when this one is half used.
      () => {},
    );
  }
}
