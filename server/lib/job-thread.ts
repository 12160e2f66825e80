import { SHARE_ENV, Worker } from "node:worker_threads";

/** `late`: it took longer than it may. `memory`: its heap is full. `ended`: it was ended with all others. */
export type ThreadEnd = "late" | "memory" | "ended" | "failed";

/** A thread that has not answered. */
export class ThreadEndError extends Error {
  readonly end: ThreadEnd;
  /** The name of the error that ended it; its text may quote what the thread had. */
  readonly errorName: string;

  constructor(end: ThreadEnd, errorName = "") {
    super(`The thread has not answered: ${end}.`);
    this.end = end;
    this.errorName = errorName;
  }
}

export interface JobThreadsOptions {
  /** The module of a thread. It answers one message with one. */
  readonly entry: URL;
  readonly name: string;
  readonly maxHeapMiB: number;
  readonly timeoutMs: number;
}

/** Threads that do one job each. */
export class JobThreads {
  readonly #options: JobThreadsOptions;
  readonly #threads = new Set<Worker>();
  #isClosed = false;

  constructor(options: JobThreadsOptions) {
    this.#options = options;
  }

  /**
   * Starts a thread, gives it the order, and resolves with its answer after it has ended. `moved` are transferred. Throws
   * `ThreadEndError`, and the signal's reason.
   */
  async answerTo<A>(order: unknown, signal: AbortSignal, moved: readonly ArrayBuffer[] = []): Promise<A> {
    signal.throwIfAborted();
    if (this.#isClosed) throw new ThreadEndError("ended");
    const { entry, name, maxHeapMiB, timeoutMs } = this.#options;
    const thread = new Worker(entry, { name, env: SHARE_ENV, resourceLimits: { maxOldGenerationSizeMb: maxHeapMiB } });
    this.#threads.add(thread);
    const { promise, resolve, reject } = Promise.withResolvers<A>();
    const giveUp = (): void => reject(signal.reason);
    const timer = setTimeout(() => reject(new ThreadEndError("late")), timeoutMs);
    thread.on("message", resolve);
    thread.on("error", (error: NodeJS.ErrnoException) =>
      reject(new ThreadEndError(error.code === "ERR_WORKER_OUT_OF_MEMORY" ? "memory" : "failed", error.name)),
    );
    thread.on("exit", () => reject(new ThreadEndError("ended")));
    signal.addEventListener("abort", giveUp, { once: true });
    try {
      thread.postMessage(order, moved);
      return await promise;
    } finally {
      clearTimeout(timer);
      signal.removeEventListener("abort", giveUp);
      this.#threads.delete(thread);
      await thread.terminate();
    }
  }

  /** Ends all threads. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([...this.#threads].map((thread) => thread.terminate()));
  }
}
