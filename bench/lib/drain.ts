import type { Burst, Corpus } from "./corpus.ts";
import { within } from "./deadline.ts";

/** A source that emits records on request and reports each arrival. */
export interface RecordSource {
  /** Requests the records; they arrive later. Rejects if that is impossible. */
  emit(file: string, burst: Burst): Promise<unknown>;
  /** Sets the listener for arriving records: more than one if they were merged. */
  listen(onRecords: (count: number) => void): void;
}

export interface Drained {
  /** From the first request to the last record. */
  readonly seconds: number;
  /** Records that did not arrive alone. */
  readonly merged: number;
}

const deadlineSeconds = 60;

/** Reads a whole corpus from a source at full speed, with this many bursts in flight at any time. */
export async function drain(
  source: RecordSource,
  { file, bursts, records }: Corpus,
  burstsInFlight = 2,
): Promise<Drained> {
  const done = Promise.withResolvers<void>();
  let asked = 0;
  let askedRecords = 0;
  let arrived = 0;
  let merged = 0;
  const marks: number[] = [];
  const ask = (): void => {
    const burst = bursts[asked];
    if (burst === undefined) return;
    asked += 1;
    askedRecords += burst.records;
    marks.push(askedRecords);
    source.emit(file, burst).catch(done.reject);
  };
  source.listen((count) => {
    arrived += count;
    merged += count - 1;
    while (marks[0] !== undefined && arrived >= marks[0]) {
      marks.shift();
      ask();
    }
    if (arrived >= records) done.resolve();
  });
  const startedAt = performance.now();
  for (let i = 0; i < burstsInFlight; i += 1) ask();
  await within(deadlineSeconds, () => `${records - arrived} of ${records} records`, done.promise);
  return { seconds: (performance.now() - startedAt) / 1_000, merged };
}
