import type { Database } from "./database.ts";

/** The time in which no daemon ran counts as so much at most: the clock may have been set meanwhile. */
const maxDowntimeMs = 24 * 60 * 60 * 1_000;

/** The wall clock as it was when this process started, and what has passed since. In Unix milliseconds. */
export function steadyNow(): number {
  return Math.floor(performance.timeOrigin + performance.now());
}

/**
 * The time that the ages of what is stored are counted by, in Unix milliseconds. It goes on from the newest time in the
 * store, so that a clock that is set forward or back has nothing forgotten early; it may lag after the wall clock.
 */
export function retentionClock(database: Database, now: () => number = steadyNow): () => number {
  const newest = database
    .prepare(
      `SELECT max(at) AS at FROM (
         SELECT max(settled_at) AS at FROM deliveries WHERE settled = 1
         UNION ALL SELECT max(settled_at) FROM prompts WHERE settled_at IS NOT NULL
         UNION ALL SELECT max(at) FROM events
         UNION ALL SELECT max(at) FROM idempotency)`,
    )
    .get()?.["at"];
  const start = now();
  const begin = typeof newest === "number" ? Math.min(Math.max(start, newest), newest + maxDowntimeMs) : start;
  return () => begin + (now() - start);
}
