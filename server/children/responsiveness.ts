import type { Child } from "../pi/child.ts";

export interface ResponsivenessLimits {
  /** A call that has waited this long triggers a check. */
  readonly probeAfterMs: number;
  /** A run that was silent this long triggers a check. */
  readonly quietRunMs: number;
  /** A pi that answers nothing for this long is reported as unresponsive. */
  readonly unresponsiveAfterMs: number;
}

interface Probe {
  readonly at: number;
  readonly since: number;
}

/**
 * Checks whether a session's pi responds: it answers `get_state` in every state, unless it is stopped or its only
 * thread is busy. It is checked only while a caller waits for it, and never ended for its silence.
 */
export class Responsiveness {
  readonly #limits: ResponsivenessLimits;
  readonly #onChange: () => void;
  #child: Child | undefined;
  #heard = 0;
  #heardAt = 0;
  #probe: Probe | undefined;
  #silentSince: number | undefined;

  constructor(limits: ResponsivenessLimits, onChange: () => void) {
    this.#limits = limits;
    this.#onChange = onChange;
  }

  /** Time since which pi has not answered, in Unix milliseconds. */
  get silentSince(): number | undefined {
    return this.#silentSince;
  }

  /** Called periodically. */
  look(child: Child | undefined, isRunning: boolean, now = performance.now()): void {
    if (child === undefined || child !== this.#child || child.heard !== this.#heard) {
      this.#child = child;
      this.#heard = child?.heard ?? 0;
      this.#heardAt = now;
      this.#probe = undefined;
      if (this.#silentSince !== undefined) {
        this.#silentSince = undefined;
        this.#onChange();
      }
      return;
    }
    if (this.#probe === undefined) this.#askIfDue(child, isRunning, now);
    else if (this.#silentSince === undefined && now - this.#probe.at >= this.#limits.unresponsiveAfterMs) {
      this.#silentSince = this.#probe.since;
      this.#onChange();
    }
  }

  #askIfDue(child: Child, isRunning: boolean, now: number): void {
    const { probeAfterMs, quietRunMs } = this.#limits;
    const { waitingSince } = child;
    const callWaits = waitingSince !== undefined && now - Math.max(waitingSince, this.#heardAt) >= probeAfterMs;
    if (!callWaits && !(isRunning && now - this.#heardAt >= quietRunMs)) return;
    this.#probe = { at: now, since: Date.now() };
    // Any record counts as an answer; the session handles the end of pi.
    child.send({ type: "get_state" }).catch(() => {});
  }
}
