export interface Clock {
  /** Milliseconds. */
  now(): number;
  /** Resolves at this time or later. */
  until(at: number): Promise<void>;
}

const realClock: Clock = {
  now: () => performance.now(),
  // A timer can end up to a millisecond early.
  until: async (at) => {
    for (let left = at - performance.now(); left > 0; left = at - performance.now())
      await new Promise((resolve) => setTimeout(resolve, left));
  },
};

export interface OpenLoop {
  readonly everyMs: number;
  readonly count: number;
  /** Default: the process's own. */
  readonly clock?: Clock;
}

export interface OpenLoopTimes {
  /** Milliseconds from when each request was due until its answer. */
  readonly latencies: readonly number[];
  /** Milliseconds by which this process sent each one late: its own share of the latency. */
  readonly lateness: readonly number[];
}

/**
 * Sends a request at each time of a fixed schedule, whether or not the previous one was answered: an answer that is
 * late delays no later request, so a pause of the server counts for every request that was due in it.
 */
export async function openLoop(
  request: (index: number) => Promise<unknown>,
  { everyMs, count, clock = realClock }: OpenLoop,
): Promise<OpenLoopTimes> {
  const latencies: number[] = [];
  const lateness: number[] = [];
  const answers: Promise<void>[] = [];
  const startedAt = clock.now();
  for (let i = 0; i < count; i += 1) {
    const due = startedAt + i * everyMs;
    if (clock.now() < due) await clock.until(due);
    lateness.push(clock.now() - due);
    const answered = request(i).then(() => {
      latencies.push(clock.now() - due);
    });
    // The failure is reported below, after all were sent.
    answered.catch(() => {});
    answers.push(answered);
  }
  await Promise.all(answers);
  return { latencies, lateness };
}
