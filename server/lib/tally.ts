export interface TallyOptions<Details> {
  readonly everyMs: number;
  /** Something that has not happened for so long. */
  readonly first: (details: Details) => void;
  /** How often it has happened since it was last told, and the last of these. */
  readonly further: (details: Details, count: number) => void;
}

/** Tells what may happen very often at most once in a time, by kinds of which there are few. */
export class Tally<Details> {
  readonly #options: TallyOptions<Details>;
  readonly #kinds = new Map<string, { count: number; last: Details }>();
  #timer: NodeJS.Timeout | undefined;

  constructor(options: TallyOptions<Details>) {
    this.#options = options;
  }

  add(kind: string, details: Details): void {
    const known = this.#kinds.get(kind);
    if (known !== undefined) {
      known.count += 1;
      known.last = details;
      return;
    }
    this.#kinds.set(kind, { count: 0, last: details });
    this.#timer ??= setInterval(() => this.#tell(), this.#options.everyMs).unref();
    this.#options.first(details);
  }

  #tell(): void {
    for (const [kind, { count, last }] of this.#kinds) {
      if (count === 0) this.#kinds.delete(kind);
      else {
        this.#kinds.set(kind, { count: 0, last });
        this.#options.further(last, count);
      }
    }
    if (this.#kinds.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}
