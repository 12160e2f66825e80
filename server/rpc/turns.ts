import type { Grant } from "./grant.ts";

/** How long work runs before the event loop continues, in milliseconds. A single job may take longer. */
const sliceMs = 0.25;

/**
 * Shares the daemon's thread between tokens. A token's work runs immediately until it has used a slice. Further work
 * waits, and one slice of it runs in each turn of the event loop; the token with the least used time goes first. So a
 * call of another token waits for about one slice, however much work a token sends.
 */
export class Turns {
  readonly #lanes = new WeakMap<Grant, Lane>();
  /** For calls without a token. */
  readonly #other: Lane = new Lane(this);
  readonly #waiting = new Set<Lane>();
  /** The used time of the lane that ran last. An idle lane starts from it, so that it cannot save up time. */
  #used = 0;
  /** In milliseconds. */
  readonly now: () => number;

  constructor(now: () => number = () => performance.now()) {
    this.now = now;
  }

  /** The lane of a token. */
  of(grant: Grant | undefined): Lane {
    if (grant === undefined) return this.#other;
    const known = this.#lanes.get(grant);
    if (known !== undefined) return known;
    const lane = new Lane(this);
    this.#lanes.set(grant, lane);
    return lane;
  }

  /** Registers a lane with waiting work. */
  add(lane: Lane): void {
    lane.usedMs = Math.max(lane.usedMs, this.#used);
    if (this.#waiting.size === 0) setImmediate(() => this.#run());
    this.#waiting.add(lane);
  }

  #run(): void {
    const until = this.now() + sliceMs;
    do {
      const lane = this.#next();
      this.#used = lane.usedMs;
      if (!lane.runNext()) this.#waiting.delete(lane);
    } while (this.#waiting.size > 0 && this.now() < until);
    if (this.#waiting.size > 0) setImmediate(() => this.#run());
  }

  #next(): Lane {
    let least: Lane | undefined;
    for (const lane of this.#waiting) if (least === undefined || lane.usedMs < least.usedMs) least = lane;
    return least as Lane;
  }
}

type Job = () => void;

/** The work of one token, in order of arrival. */
export class Lane {
  /** Time of the daemon's thread, in milliseconds, since the lane was created. */
  usedMs = 0;
  readonly #turns: Turns;
  #jobs: (Job | undefined)[] = [];
  /** Number of {@link #jobs} that have run. */
  #done = 0;
  /** Jobs that run before {@link #jobs}. */
  readonly #first: Job[] = [];
  /** Jobs passed by jobs that have run, the next one last. They run before {@link #jobs}. */
  readonly #next: Job[] = [];
  #sliceUsedMs = 0;
  /** Jobs passed by the running job. Undefined: no job is running. */
  #parts: Job[] | undefined;

  constructor(turns: Turns) {
    this.#turns = turns;
  }

  /**
   * Runs a job: immediately if the token has not used its slice, otherwise in its turn. Jobs that a job passes while it
   * runs come directly after it. Only the time before a job's first `await` counts. `isFirst`: the job finishes started
   * work, so it runs before work that has not started.
   */
  pass<T>(job: () => T, { isFirst = false } = {}): T | Promise<Awaited<T>> {
    if (this.#parts === undefined && this.#isEmpty && this.#sliceUsedMs < sliceMs) {
      try {
        return this.#timed(job);
      } finally {
        this.#goOn();
      }
    }
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const later = (): void => {
      try {
        resolve(this.#timed(job));
      } catch (error) {
        reject(error);
      }
    };
    if (this.#parts !== undefined) this.#parts.push(later);
    else this.#queue(isFirst ? this.#first : this.#jobs, [later]);
    return promise as Promise<Awaited<T>>;
  }

  /** Whether a job passed now would wait. */
  get isBusy(): boolean {
    return !this.#isEmpty || this.#sliceUsedMs >= sliceMs;
  }

  /** Runs work that cannot wait, and counts its time for the token, so that its later work waits longer. */
  count<T>(job: () => T): T {
    const began = this.#turns.now();
    const usedMs = this.usedMs;
    try {
      return job();
    } finally {
      // Nested calls have counted their own time.
      const tookMs = this.#turns.now() - began - (this.usedMs - usedMs);
      this.usedMs += tookMs;
      this.#sliceUsedMs += tookMs;
    }
  }

  /** Runs the job that has waited longest. Returns whether more jobs wait. */
  runNext(): boolean {
    let job = this.#first.shift() ?? this.#next.pop();
    if (job === undefined) {
      job = this.#jobs[this.#done];
      this.#jobs[this.#done++] = undefined;
      this.#shorten();
    }
    job?.();
    const parts = this.#parts ?? [];
    this.#parts = undefined;
    while (parts.length > 0) this.#next.push(parts.pop() as Job);
    if (!this.#isEmpty) return true;
    this.#jobs = [];
    this.#done = 0;
    this.#sliceUsedMs = 0;
    return false;
  }

  /** Removes the places of jobs that have run, because a busy lane may never be empty. */
  #shorten(): void {
    if (this.#done < 1_024 || this.#done * 2 < this.#jobs.length) return;
    this.#jobs.splice(0, this.#done);
    this.#done = 0;
  }

  get #isEmpty(): boolean {
    return this.#done === this.#jobs.length && this.#first.length + this.#next.length === 0;
  }

  /** Runs the jobs that a job has passed, until the slice is used. */
  #goOn(): void {
    let parts = this.#parts ?? [];
    this.#parts = undefined;
    while (parts.length > 0 && this.#sliceUsedMs < sliceMs) {
      const [next, ...others] = parts;
      next?.();
      parts = [...(this.#parts ?? []), ...others];
      this.#parts = undefined;
    }
    if (parts.length > 0) this.#queue(this.#jobs, parts);
  }

  #queue(where: (Job | undefined)[], jobs: readonly Job[]): void {
    if (this.#isEmpty) this.#turns.add(this);
    where.push(...jobs);
  }

  #timed<T>(job: () => T): T {
    this.#parts = [];
    return this.count(job);
  }
}
