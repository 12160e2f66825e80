/** Whoever has frames that wait. */
export interface Holder {
  /** Of what waits, whether others share it or not. */
  readonly heldBytes: number;
  /** The pieces of memory in which that lies. */
  memory(): Iterable<ArrayBufferLike>;
  /** Gives up what it holds. */
  giveUp(): void;
}

/** What all connections together may have waiting. Memory counts as a whole, and once, however many share it. */
export class BufferBudget {
  readonly #maxBytes: number;
  readonly #holders = new Set<Holder>();
  #isTight = false;
  /** What all of them have left out, ever. */
  droppedDeltas = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** What one of those that wait may hold before it makes do with less. */
  get share(): number {
    return this.#isTight ? this.#maxBytes / 2 / Math.max(1, this.#holders.size) : Number.POSITIVE_INFINITY;
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
      const bytes = this.#keptBytes();
      this.#isTight = bytes > this.#maxBytes / 2;
      if (bytes <= this.#maxBytes) return;
      let most: Holder | undefined;
      for (const holder of this.#holders) {
        if (most === undefined || holder.heldBytes > most.heldBytes) most = holder;
      }
      if (most === undefined) return;
      this.#holders.delete(most);
      most.giveUp();
    }
  }

  #keptBytes(): number {
    const kept = new Set<ArrayBufferLike>();
    for (const holder of this.#holders) for (const piece of holder.memory()) kept.add(piece);
    let bytes = 0;
    for (const piece of kept) bytes += piece.byteLength;
    return bytes;
  }
}
