/** Time that only grows, independently of the system clock, with timers. */
export interface MonotonicClock {
  /** Milliseconds since an arbitrary moment in the past. */
  now(): number;
  /** Calls `run` once after the delay. Returns a function that cancels it. */
  after(ms: number, run: () => void): () => void;
}

/** Longer delays do not fit into a timer. */
const longestTimerMs = 2 ** 31 - 1;

export const systemClock: MonotonicClock = {
  now: () => performance.now(),
  after: (ms, run) => {
    const timer = setTimeout(run, Math.min(longestTimerMs, Math.max(0, ms)));
    return () => clearTimeout(timer);
  },
};
