export interface SerialQueueOptions {
  /** Maximum number of waiting jobs. */
  readonly maxWaiting: number;
  /** The error for a job when the queue is full. */
  readonly onFull: () => Error;
  /** Called when the queue becomes empty. */
  readonly onEmpty?: () => void;
}

interface Job {
  readonly begin: () => Promise<void>;
}

/** Runs jobs one at a time, in order of arrival. A failing job does not stop the next. */
export class SerialQueue {
  readonly #options: SerialQueueOptions;
  readonly #waiting: Job[] = [];
  #active = false;

  constructor(options: SerialQueueOptions) {
    this.#options = options;
  }

  /**
   * Runs the job after all waiting ones, and returns its outcome. If the signal aborts before its turn, the job never
   * begins and is rejected with the signal's reason.
   */
  run<T>(job: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    if (this.#waiting.length >= this.#options.maxWaiting) return Promise.reject(this.#options.onFull());
    return this.#enqueue({ job, place: "last", signal });
  }

  /** Runs the job before all waiting ones, but after the current one. The signal is as with {@link run}. */
  overtake<T>(job: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    return this.#enqueue({ job, place: "first", signal });
  }

  /** Whether no job is running or waiting. */
  get isEmpty(): boolean {
    return !this.#active && this.#waiting.length === 0;
  }

  /** Number of waiting jobs. */
  get length(): number {
    return this.#waiting.length;
  }

  /** Whether a job is running. */
  get isBusy(): boolean {
    return this.#active;
  }

  #enqueue<T>({ job, place, signal }: Enqueued<T>): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const begin = async (): Promise<void> => {
      try {
        signal?.throwIfAborted();
        resolve(await job());
      } catch (error) {
        reject(error);
      }
    };
    if (place === "first") this.#waiting.unshift({ begin });
    else this.#waiting.push({ begin });
    if (!this.#active) void this.#drain();
    return promise;
  }

  async #drain(): Promise<void> {
    this.#active = true;
    for (let job = this.#waiting.shift(); job !== undefined; job = this.#waiting.shift()) await job.begin();
    this.#active = false;
    this.#options.onEmpty?.();
  }
}

interface Enqueued<T> {
  readonly job: () => Promise<T>;
  readonly place: "first" | "last";
  readonly signal: AbortSignal | undefined;
}
