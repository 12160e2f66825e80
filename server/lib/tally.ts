export interface TallyOptions<Details> {
  readonly everyMs: number;
  /** Number of events of a kind that are reported individually in a window. Default: 1. */
  readonly atOnce?: number;
  /** An event below the limit. */
  readonly first: (details: Details) => void;
  /** The number of events since the last report, and the newest of them. */
  readonly further: (details: Details, count: number) => void;
}

/**
 * Limits reports of frequent events: a few per window and kind, then their number. The number of kinds must be small.
 */
export class Tally<Details> {
  readonly #options: TallyOptions<Details>;
  readonly #kinds = new Map<string, { told: number; count: number; last: Details }>();
  #timer: NodeJS.Timeout | undefined;

  constructor(options: TallyOptions<Details>) {
    this.#options = options;
  }

  add(kind: string, details: Details): void {
    const known = this.#kinds.get(kind);
    if (known !== undefined && known.told >= (this.#options.atOnce ?? 1)) {
      known.count += 1;
      known.last = details;
      return;
    }
    if (known === undefined) this.#kinds.set(kind, { told: 1, count: 0, last: details });
    else known.told += 1;
    this.#timer ??= setInterval(() => this.#report(), this.#options.everyMs).unref();
    this.#options.first(details);
  }

  #report(): void {
    for (const [kind, { told, count, last }] of this.#kinds) {
      if (count === 0) this.#kinds.delete(kind);
      else {
        this.#kinds.set(kind, { told, count: 0, last });
        this.#options.further(last, count);
      }
    }
    if (this.#kinds.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}
