/** Counts by kind. */
export class Tally {
  readonly #counts = new Map<string, number>();

  count(kind: string): void {
    this.#counts.set(kind, this.of(kind) + 1);
  }

  of(kind: string): number {
    return this.#counts.get(kind) ?? 0;
  }

  all(): Readonly<Record<string, number>> {
    return Object.fromEntries([...this.#counts].toSorted(([a], [b]) => a.localeCompare(b)));
  }
}
