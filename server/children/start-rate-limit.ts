import { WireError } from "../../protocol/errors.ts";
import { RateWindow } from "../lib/rate-window.ts";

export interface StartRateLimits {
  readonly windowMs: number;
  /** Maximum starts of one session's pi in the window. */
  readonly maxWakes: number;
}

/** Limits the starts of one session's pi, because repeated ends and starts would keep the machine busy. */
export class StartRateLimit {
  readonly #limits: StartRateLimits;
  readonly #window: RateWindow;

  constructor(limits: StartRateLimits) {
    this.#limits = limits;
    this.#window = new RateWindow({ max: limits.maxWakes, windowMs: limits.windowMs });
  }

  /** Counts a start. */
  count(now = performance.now()): void {
    this.#window.add(now);
  }

  /** Returns `overloaded` if the limit is reached. */
  refusal(now = performance.now()): WireError | undefined {
    if (!this.#window.isFull(now)) return undefined;
    const { maxWakes, windowMs } = this.#limits;
    const message = `The session's pi was started ${maxWakes} times in ${windowMs / 1_000} s, which is the limit.`;
    return new WireError("overloaded", message, { retryAfterMs: Math.max(1, Math.ceil(this.#window.restMs(now))) });
  }
}
