import type { Grant } from "./grant.ts";

/** How much work runs before the event loop gets a turn, in milliseconds. One job alone may take longer. */
const sliceMs = 0.25;

/**
 * Shares the daemon's thread between tokens. A token's work runs at once until it has used a slice; its further work waits,
 * and runs a slice for each turn of the event loop, of the token first that has used the least. So another token's call
 * waits for about one slice, however much work a token has brought.
 */
export class Turns {
  readonly #lanes = new WeakMap<Grant, Lane>();
  /** For calls without a token. */
  readonly #other: Lane = new Lane(this);
  readonly #waiting = new Set<Lane>();
  /** The use of the lane that ran last: a lane that was idle does not claim the past. */
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

  /** The lane has work that waits. */
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

/** The work of one token, in the order in which it came. */
export class Lane {
  /** Of the daemon's thread, since the lane began. */
  usedMs = 0;
  readonly #turns: Turns;
  #jobs: (Job | undefined)[] = [];
  /** How many of {@link #jobs} have run. */
  #done = 0;
  /** What goes before them. */
  readonly #first: Job[] = [];
  /** What the jobs that have run have passed, the next one last: it goes before {@link #jobs}. */
  readonly #next: Job[] = [];
  #sliceUsedMs = 0;
  /** What the running job has passed. Undefined: none runs. */
  #parts: Job[] | undefined;

  constructor(turns: Turns) {
    this.#turns = turns;
  }

  /**
   * Runs a job: at once, where the token has not used its slice, else when it is its turn. What a job passes while it runs
   * comes directly after it. Only what a job does before its first `await` counts as its time. `isFirst`: it ends what was
   * begun, and goes before work that was not.
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

  /** Whether a job that is passed now would wait. */
  get isBusy(): boolean {
    return !this.#isEmpty || this.#sliceUsedMs >= sliceMs;
  }

  /** Runs what cannot wait at once, and counts its time as the token's: its further work waits the longer. */
  count<T>(job: () => T): T {
    const began = this.#turns.now();
    const usedMs = this.usedMs;
    try {
      return job();
    } finally {
      // Without what was counted within it.
      const tookMs = this.#turns.now() - began - (this.usedMs - usedMs);
      this.usedMs += tookMs;
      this.#sliceUsedMs += tookMs;
    }
  }

  /** Runs the job that has waited longest. Returns whether others wait. */
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

  /** Drops the places of jobs that have run: a busy lane may never be empty. */
  #shorten(): void {
    if (this.#done < 1_024 || this.#done * 2 < this.#jobs.length) return;
    this.#jobs.splice(0, this.#done);
    this.#done = 0;
  }

  get #isEmpty(): boolean {
    return this.#done === this.#jobs.length && this.#first.length + this.#next.length === 0;
  }

  /** Runs what a job has passed as far as the slice allows. */
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
