/** A log with unstored frames. */
export interface Unstored {
  /** Returns whether that succeeded. */
  persist(): Promise<boolean>;
}

/** Frames in the tail file up to a moment, until they are stored. */
interface Sealed {
  remove(): void;
}

export interface LogWriterOptions {
  /** How long frames may wait before they are stored. */
  readonly afterMs: number;
  /** A log with more unstored bytes is written immediately. */
  readonly maxUnstoredBytes: number;
  readonly seal: () => Sealed | undefined;
}

/** Delay before a failed write is repeated. */
const retryMs = 1_000;

/** Maximum number of tail files that wait for a failing store. */
const maxSealed = 16;

/** Writes all sessions' logs at the same moments, so that they share transactions. */
export class LogWriter {
  readonly #options: LogWriterOptions;
  readonly #unstored = new Map<Unstored, number>();
  readonly #underWay = new Set<Promise<boolean>>();
  #sealed: Sealed[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(options: LogWriterOptions) {
    this.#options = options;
  }

  /** Counts bytes that a log must store. */
  note(log: Unstored, bytes: number): void {
    const all = (this.#unstored.get(log) ?? 0) + bytes;
    this.#unstored.set(log, all);
    if (all > this.#options.maxUnstoredBytes) void this.#write(log);
    // Also then: only a flush removes what is stored from the tail.
    this.#timer ??= this.#after(this.#options.afterMs);
  }

  /** Writes all logs. Never rejects. */
  async flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    // A failing store is retried often, so frames from several retries share a file.
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
