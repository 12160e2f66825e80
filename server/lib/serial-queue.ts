/** Runs jobs one after the other, in the order of their arrival. A job that fails does not stop the next. */
export class SerialQueue {
  readonly #waiting: (() => Promise<void>)[] = [];
  #active = false;

  /** Runs the job behind all that wait, and gives its outcome. */
  run<T>(job: () => Promise<T>): Promise<T> {
    return this.#enqueue(job, "last");
  }

  /** Runs the job before all that wait, but never beside the one that runs. */
  overtake<T>(job: () => Promise<T>): Promise<T> {
    return this.#enqueue(job, "first");
  }

  /** How many jobs wait. */
  get length(): number {
    return this.#waiting.length;
  }

  #enqueue<T>(job: () => Promise<T>, place: "first" | "last"): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const task = async (): Promise<void> => {
      try {
        resolve(await job());
      } catch (error) {
        reject(error);
      }
    };
    if (place === "first") this.#waiting.unshift(task);
    else this.#waiting.push(task);
    if (!this.#active) void this.#drain();
    return promise;
  }

  async #drain(): Promise<void> {
    this.#active = true;
    for (let task = this.#waiting.shift(); task !== undefined; task = this.#waiting.shift()) await task();
    this.#active = false;
  }
}
