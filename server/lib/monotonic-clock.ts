/** Time that only grows, whatever is done to the system's clock, and timers in it. */
export interface MonotonicClock {
  /** Milliseconds since some moment in the past. */
  now(): number;
  /** Calls `run` once, so many milliseconds later. The function that it gives takes that back. */
  after(ms: number, run: () => void): () => void;
}

/** Longer waits do not fit into a timer. */
const longestTimerMs = 2 ** 31 - 1;

export const systemClock: MonotonicClock = {
  now: () => performance.now(),
  after: (ms, run) => {
    const timer = setTimeout(run, Math.min(longestTimerMs, Math.max(0, ms)));
    return () => clearTimeout(timer);
  },
};
