import type { Database } from "./database.ts";

/** Time between two daemons counts at most this much: the clock may have been set meanwhile. */
const maxDowntimeMs = 24 * 60 * 60 * 1_000;

/** The wall clock at the start of this process plus the time since. In Unix milliseconds. */
export function steadyNow(): number {
  return Math.floor(performance.timeOrigin + performance.now());
}

/**
 * The time from which the ages of stored rows are counted, in Unix milliseconds. It continues from the newest time in
 * the store, so that setting the clock never deletes rows early; it may lag behind the wall clock.
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
