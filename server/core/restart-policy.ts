/** Failures further apart than this have nothing to do with each other. */
export const retryWindowMs = 10 * 60_000;
export const retryDelaysMs = [0, 0, 1_000, 5_000, 15_000, 60_000, 300_000] as const;

/** So often within the window a session is started again for those who follow it; for a push it is tried on. */
export const maxRestarts = 5;

export type NextTry = { readonly kind: "again"; readonly delayMs: number } | { readonly kind: "stays" };

/**
 * What to do after so many failures within the window: the first two may be tried again at once. A session that nobody
 * waits for with a push stays as it is after {@link maxRestarts}.
 */
export function nextTry(failures: number, pushWaits: boolean): NextTry {
  if (failures > maxRestarts && !pushWaits) return { kind: "stays" };
  return { kind: "again", delayMs: retryDelaysMs[Math.min(failures, retryDelaysMs.length) - 1] ?? 0 };
}

/** So many starts in a row may fail, of whatever sessions, before all that are not asked for slow down. */
const toleratedFailures = 5;
const longestPauseMs = 300_000;

/**
 * How starts go in the whole daemon. Where none succeeds (a pi that was updated to something broken), sessions that try by
 * themselves take turns with one try at a time, less and less often. What a client asks for is always tried.
 */
export class StartHealth {
  #failures = 0;
  #lastTry = Number.NEGATIVE_INFINITY;

  succeeded(): void {
    this.#failures = 0;
  }

  failed(): void {
    this.#failures += 1;
  }

  /** Milliseconds until a session may try by itself; 0: now, and the others wait. */
  admit(now = performance.now()): number {
    if (this.#failures < toleratedFailures) return 0;
    const pause = Math.min(longestPauseMs, 1_000 * 2 ** (this.#failures - toleratedFailures));
    const left = this.#lastTry + pause - now;
    if (left > 0) return left;
    this.#lastTry = now;
    return 0;
  }
}
