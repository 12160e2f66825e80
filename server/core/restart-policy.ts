/** Failures further apart than this are unrelated. */
export const retryWindowMs = 10 * 60_000;
export const retryDelaysMs = [0, 0, 1_000, 5_000, 15_000, 60_000, 300_000] as const;

/** Maximum automatic restarts within the window if only subscribers wait. With a waiting push there is no limit. */
export const maxRestarts = 5;

export type NextTry = { readonly kind: "again"; readonly delayMs: number } | { readonly kind: "stays" };

/**
 * The next action after this many failures within the window: the first two are retried immediately. A session
 * without a waiting push stops after {@link maxRestarts}.
 */
export function nextTry(failures: number, pushWaits: boolean): NextTry {
  if (failures > maxRestarts && !pushWaits) return { kind: "stays" };
  return { kind: "again", delayMs: retryDelaysMs[Math.min(failures, retryDelaysMs.length) - 1] ?? 0 };
}

/** Consecutive failed starts, of any sessions, before automatic starts slow down. */
const toleratedFailures = 5;
const longestPauseMs = 300_000;

/**
 * The success of starts in the whole daemon. If none succeeds (for example after a broken pi update), automatic
 * starts take turns, one at a time and with growing delays. A start that a client requests is always tried.
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

  /** Milliseconds until a session may start automatically. 0: immediately; other sessions then wait. */
  admit(now = performance.now()): number {
    if (this.#failures < toleratedFailures) return 0;
    const pause = Math.min(longestPauseMs, 1_000 * 2 ** (this.#failures - toleratedFailures));
    const left = this.#lastTry + pause - now;
    if (left > 0) return left;
    this.#lastTry = now;
    return 0;
  }
}
