/** A log with something that is not stored yet. */
export interface Unstored {
  /** Gives whether that succeeded. */
  persist(): Promise<boolean>;
}

/** What was noted elsewhere up to a moment, until it is stored. */
interface Sealed {
  remove(): void;
}

export interface LogWriterOptions {
  /** How long what was told waits to be stored. */
  readonly afterMs: number;
  /** A log with more than this is written at once. */
  readonly maxUnstoredBytes: number;
  readonly seal: () => Sealed | undefined;
}

/** How long a log waits that could not be written. */
const retryMs = 1_000;

/** How many files wait for a store that fails; further ones are not begun. */
const maxSealed = 16;

/** Writes the sessions' logs, all of them at the same moments, so that they share their transactions. */
export class LogWriter {
  readonly #options: LogWriterOptions;
  readonly #unstored = new Map<Unstored, number>();
  readonly #underWay = new Set<Promise<boolean>>();
  #sealed: Sealed[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(options: LogWriterOptions) {
    this.#options = options;
  }

  /** A log has got so many bytes that are to be stored. */
  note(log: Unstored, bytes: number): void {
    const all = (this.#unstored.get(log) ?? 0) + bytes;
    this.#unstored.set(log, all);
    if (all > this.#options.maxUnstoredBytes) void this.#write(log);
    else this.#timer ??= this.#after(this.#options.afterMs);
  }

  /** Writes all of them. Never rejects. */
  async flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    // A store that fails is tried again and again: what was told meanwhile shares a file then.
    const sealed = this.#sealed.length < maxSealed ? this.#options.seal() : undefined;
    if (sealed !== undefined) this.#sealed.push(sealed);
    const concerned = this.#sealed;
    this.#sealed = [];
    for (const log of [...this.#unstored.keys()]) void this.#write(log);
    const succeeded = await Promise.all([...this.#underWay]);
    if (!succeeded.every(Boolean)) {
      this.#sealed.push(...concerned);
      return;
    }
    for (const each of concerned) each.remove();
    if (concerned.length >= maxSealed) await this.flush();
  }

  #after(ms: number): NodeJS.Timeout {
    return setTimeout(() => void this.flush(), ms).unref();
  }

  async #write(log: Unstored): Promise<void> {
    this.#unstored.delete(log);
    const writing = log.persist();
    this.#underWay.add(writing);
    const succeeded = await writing;
    this.#underWay.delete(writing);
    if (succeeded) return;
    this.#unstored.set(log, this.#unstored.get(log) ?? 0);
    this.#timer ??= this.#after(retryMs);
  }
}
