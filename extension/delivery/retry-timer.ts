const firstMs = 10;
const longestMs = 500;

/**
 * Calls back with increasing delay, to poll for changes for which pi sends no event. Never keeps pi alive. Errors of
 * the callback go to `fault`, because an exception in a timer would terminate pi.
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

  /** Schedules a call. If called from within the callback, the delay grows. */
  ask(): void {
    if (this.#timer !== undefined) return;
    this.#timer = setTimeout(() => this.#fire(), this.#nextMs);
    this.#timer.unref();
    this.#nextMs = Math.min(this.#nextMs * 2, longestMs);
  }

  /** Schedules a call immediately, because an awaited change may have happened. */
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
