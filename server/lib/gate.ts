export interface PassOptions {
  /** A job whose signal is aborted before its turn leaves the queue, and is rejected with the signal's reason. */
  readonly signal?: AbortSignal;
  /** Waits until all other jobs have started. */
  readonly isSpare?: boolean;
}

interface Waiting {
  readonly isSpare: boolean;
  readonly begin: () => void;
}

/** Limits the number of parallel jobs; further ones wait in order of arrival. */
export class Gate {
  readonly #waiting: Waiting[] = [];
  readonly #maxHoldMs: number;
  #free: number;

  /**
   * A job that takes longer than `maxHoldMs` continues, but frees its place, because it is probably waiting itself.
   */
  constructor(places: number, maxHoldMs: number) {
    this.#free = places;
    this.#maxHoldMs = maxHoldMs;
  }

  async pass<T>(job: () => Promise<T>, { signal, isSpare = false }: PassOptions = {}): Promise<T> {
    signal?.throwIfAborted();
    if (this.#free > 0) this.#free -= 1;
    else await this.#turn(isSpare, signal);
    let holds = true;
    const leave = (): void => {
      if (holds) this.#leave();
      holds = false;
    };
    const timer = setTimeout(leave, this.#maxHoldMs);
    try {
      return await job();
    } finally {
      clearTimeout(timer);
      leave();
    }
  }

  async #turn(isSpare: boolean, signal: AbortSignal | undefined): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const entry: Waiting = { isSpare, begin: resolve };
    const spare = isSpare ? -1 : this.#waiting.findIndex((other) => other.isSpare);
    this.#waiting.splice(spare === -1 ? this.#waiting.length : spare, 0, entry);
    const abandon = (): void => {
      const at = this.#waiting.indexOf(entry);
      if (at === -1) return;
      this.#waiting.splice(at, 1);
      reject(signal?.reason);
    };
    signal?.addEventListener("abort", abandon, { once: true });
    try {
      await promise;
    } finally {
      signal?.removeEventListener("abort", abandon);
    }
  }

  #leave(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#free += 1;
    else next.begin();
  }
}
