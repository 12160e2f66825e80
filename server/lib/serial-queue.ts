export interface SerialQueueOptions {
  /** How many jobs may wait. */
  readonly maxWaiting: number;
  /** What a job that finds no place is rejected with. */
  readonly onFull: () => Error;
  /** Called whenever the last job has ended. */
  readonly onEmpty?: () => void;
}

interface Job {
  readonly begin: () => Promise<void>;
}

/** Runs jobs one after the other, in the order of their arrival. A job that fails does not stop the next. */
export class SerialQueue {
  readonly #options: SerialQueueOptions;
  readonly #waiting: Job[] = [];
  #active = false;

  constructor(options: SerialQueueOptions) {
    this.#options = options;
  }

  /**
   * Runs the job behind all that wait, and gives its outcome. A job whose signal is aborted before its turn never begins:
   * it is rejected with the signal's reason.
   */
  run<T>(job: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    if (this.#waiting.length >= this.#options.maxWaiting) return Promise.reject(this.#options.onFull());
    return this.#enqueue({ job, place: "last", signal });
  }

  /** Runs the job before all that wait, but never beside the one that runs. The signal is as with {@link run}. */
  overtake<T>(job: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    return this.#enqueue({ job, place: "first", signal });
  }

  /** Whether no job runs, and none waits. */
  get isEmpty(): boolean {
    return !this.#active && this.#waiting.length === 0;
  }

  /** How many jobs wait. */
  get length(): number {
    return this.#waiting.length;
  }

  /** Whether one runs. */
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
