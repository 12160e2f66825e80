/** What is on its way to the disk, by key: readers of the database do not find it yet. */
export class Queued {
  readonly #counts = new Map<string, number>();

  has(key: string): boolean {
    return this.#counts.has(key);
  }

  /** Counts a write until it has settled. Gives it back. */
  until(written: Promise<void>, key: string): Promise<void> {
    this.#counts.set(key, (this.#counts.get(key) ?? 0) + 1);
    const settled = (): void => {
      const left = (this.#counts.get(key) ?? 0) - 1;
      if (left > 0) this.#counts.set(key, left);
      else this.#counts.delete(key);
    };
    written.then(settled, settled);
    return written;
  }
}
