/** Failures further apart than this have nothing to do with each other. */
const windowMs = 10 * 60_000;
export const retryDelaysMs = [0, 0, 1_000, 5_000, 15_000, 60_000, 300_000] as const;

/** How long to wait after so many failures in a row: the first two may be tried again at once. */
function retryDelayMs(failures: number): number {
  return retryDelaysMs[Math.min(failures, retryDelaysMs.length) - 1] ?? 0;
}

/** Tries again after failures, less and less often. Its timer keeps no process alive. */
export class Retry {
  readonly #again: () => void;
  #failures: number[] = [];
  #timer: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(again: () => void) {
    this.#again = again;
  }

  /** Whether a try is due already, so that a failure before it is none of its own. */
  get isDue(): boolean {
    return this.#timer !== undefined;
  }

  /** It has failed once more. While a try is due already, nothing changes. */
  failed(now = performance.now()): void {
    if (this.#closed || this.#timer !== undefined) return;
    this.#failures = [...this.#failures.filter((at) => at > now - windowMs), now];
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#again();
    }, retryDelayMs(this.#failures.length)).unref();
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }
}
