const firstMs = 10;
const longestMs = 500;

/**
 * Calls back soon, and less often the longer it is asked again: for what pi sends no event of. Never keeps pi alive, and
 * what the callback throws goes to `fault`, since an exception in a timer would end pi.
 */
export class RetryTimer {
  readonly #callback: () => void;
  readonly #fault: (where: string, thrown: unknown) => void;
  #timer: NodeJS.Timeout | undefined;
  #nextMs = firstMs;

  constructor(callback: () => void, fault: (where: string, thrown: unknown) => void) {
    this.#callback = callback;
    this.#fault = fault;
  }

  /** Asks for a call. Asked from within the callback, the next one comes later than the one before. */
  ask(): void {
    if (this.#timer !== undefined) return;
    this.#timer = setTimeout(() => this.#fire(), this.#nextMs);
    this.#timer.unref();
    this.#nextMs = Math.min(this.#nextMs * 2, longestMs);
  }

  /** Asks for a call at once: something has happened for which it may have waited. */
  hasten(): void {
    this.stop();
    this.#nextMs = 0;
    this.ask();
    this.#nextMs = firstMs;
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#nextMs = firstMs;
  }

  #fire(): void {
    this.#timer = undefined;
    try {
      this.#callback();
    } catch (thrown) {
      this.#fault("retry", thrown);
    }
    if (this.#timer === undefined) this.#nextMs = firstMs;
  }
}
