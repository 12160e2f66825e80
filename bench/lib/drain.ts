import type { Burst, Corpus } from "./corpus.ts";

/** Somebody who can be asked for records and who counts what arrives. */
export interface RecordSource {
  /** Asks for the records; they come later. Rejects if they cannot. */
  emit(file: string, burst: Burst): Promise<unknown>;
  /** Sets who is told of each record that has arrived. */
  listen(onRecord: () => void): void;
}

const burstsInFlight = 2;

/**
 * Takes a whole corpus from a source, as fast as it comes, and gives the seconds from the first request to the last
 * record. There are always records on their way, and never more than two bursts of them.
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
