/** Whoever has frames that wait. */
export interface Holder {
  readonly heldBytes: number;
  /** Those of the frames that have so many bytes, or more. */
  largeFrames(leastBytes: number): Iterable<Buffer>;
  /** Gives up what it holds. */
  giveUp(): void;
}

/** Frames from this size on count once, however many connections share them. */
const largeBytes = 256 * 1024;

/** What all connections together may have waiting. */
export class BufferBudget {
  readonly #maxBytes: number;
  readonly #holders = new Set<Holder>();

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** What one of those that wait may hold before it makes do with less. */
  get share(): number {
    return this.#maxBytes / 2 / Math.max(1, this.#holders.size);
  }

  /** The holder has to wait from now on. */
  join(holder: Holder): void {
    this.#holders.add(holder);
  }

  leave(holder: Holder): void {
    this.#holders.delete(holder);
  }

  /** Looks whether all of them hold too much; who holds most then gives up. */
  enforce(): void {
    for (;;) {
      let sum = 0;
      let most: Holder | undefined;
      for (const holder of this.#holders) {
        sum += holder.heldBytes;
        if (most === undefined || holder.heldBytes > most.heldBytes) most = holder;
      }
      if (most === undefined || sum <= this.#maxBytes || sum - this.#sharedBytes() <= this.#maxBytes) return;
      this.#holders.delete(most);
      most.giveUp();
    }
  }

  /** What was counted more than once. */
  #sharedBytes(): number {
    const counted = new Set<Buffer>();
    let shared = 0;
    for (const holder of this.#holders) {
      for (const frame of holder.largeFrames(largeBytes)) {
        if (counted.has(frame)) shared += frame.length;
        counted.add(frame);
      }
    }
    return shared;
  }
}
