import { WireError } from "../../protocol/errors.ts";
import { RateWindow } from "../lib/rate-window.ts";

export interface StartRateLimits {
  readonly windowMs: number;
  /** How often the pi of one session may be started in that time. */
  readonly maxWakes: number;
}

/** How often one session's pi is started: calls that end it and want it again would else keep the machine busy. */
export class StartRateLimit {
  readonly #limits: StartRateLimits;
  readonly #window: RateWindow;

  constructor(limits: StartRateLimits) {
    this.#limits = limits;
    this.#window = new RateWindow({ max: limits.maxWakes, windowMs: limits.windowMs });
  }

  /** Counts a pi that is started. */
  count(now = performance.now()): void {
    this.#window.add(now);
  }

  /** `overloaded` where no further one may be. */
  refusal(now = performance.now()): WireError | undefined {
    if (!this.#window.isFull(now)) return undefined;
    const { maxWakes, windowMs } = this.#limits;
    const message = `The session's pi was started ${maxWakes} times in ${windowMs / 1_000} s, which is the limit.`;
    return new WireError("overloaded", message, { retryAfterMs: Math.max(1, Math.ceil(this.#window.restMs(now))) });
  }
}
