import type { Burst, Corpus } from "./corpus.ts";

/** A source that emits records on request and reports each arrival. */
export interface RecordSource {
  /** Requests the records; they arrive later. Rejects if that is impossible. */
  emit(file: string, burst: Burst): Promise<unknown>;
  /** Sets the listener for arriving records. */
  listen(onRecord: () => void): void;
}

const burstsInFlight = 2;

/**
 * Reads a whole corpus from a source at full speed, and returns the seconds from the first request to the last
 * record. Up to two bursts are in flight at any time.
 */
export async function drain(source: RecordSource, { file, bursts, records }: Corpus): Promise<number> {
  const done = Promise.withResolvers<void>();
  let asked = 0;
  let askedRecords = 0;
  let arrived = 0;
  let mark = 0;
  const marks: number[] = [];
  const ask = (): void => {
    const burst = bursts[asked];
    if (burst === undefined) return;
    asked += 1;
    askedRecords += burst.records;
    marks.push(askedRecords);
    source.emit(file, burst).catch(done.reject);
  };
  source.listen(() => {
    arrived += 1;
    if (arrived === marks[mark]) {
      mark += 1;
      ask();
    }
    if (arrived === records) done.resolve();
  });
  const startedAt = performance.now();
  for (let i = 0; i < burstsInFlight; i += 1) ask();
  await done.promise;
  return (performance.now() - startedAt) / 1_000;
}
