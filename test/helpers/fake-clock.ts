import type { MonotonicClock } from "../../server/lib/monotonic-clock.ts";

/** A clock that advances only on request. */
export interface FakeClock extends MonotonicClock {
  /** Advances the clock; due timers run at their time, in order. */
  advance(ms: number): void;
  /** How many timers wait. */
  readonly waiting: number;
}

export function fakeClock(): FakeClock {
  const timers = new Map<number, { readonly at: number; readonly run: () => void }>();
  let now = 1_000;
  let count = 0;
  return {
    now: () => now,
    after: (ms, run) => {
      count += 1;
      const id = count;
      timers.set(id, { at: now + Math.max(0, ms), run });
      return () => void timers.delete(id);
    },
    advance: (ms) => {
      const until = now + ms;
      for (;;) {
        const [next] = [...timers].filter(([, { at }]) => at <= until).sort((a, b) => a[1].at - b[1].at || a[0] - b[0]);
        if (next === undefined) break;
        const [id, { at, run }] = next;
        timers.delete(id);
        now = Math.max(now, at);
        run();
      }
      now = until;
    },
    get waiting() {
      return timers.size;
    },
  };
}
