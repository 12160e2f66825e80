import type { Child } from "../pi/child.ts";

export interface ResponsivenessLimits {
  /** A call that has waited for so long has pi asked whether it is there. */
  readonly probeAfterMs: number;
  /** So does a run of which nothing was heard for so long. */
  readonly quietRunMs: number;
  /** A pi that answers nothing for so long is told to be unresponsive. */
  readonly unresponsiveAfterMs: number;
}

interface Probe {
  readonly at: number;
  readonly since: number;
}

/**
 * Whether a session's pi is there: it answers `get_state` in every state, whatever else it does, unless it is stopped or
 * its one thread is busy. It is asked only while somebody waits for it, and is never ended for its silence.
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

  /** Since when pi has not answered, in the time of day. */
  get silentSince(): number | undefined {
    return this.#silentSince;
  }

  /** Called every so often. */
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
    // Its answer is heard as everything is; its end is the session's to know.
    child.send({ type: "get_state" }).catch(() => {});
  }
}
