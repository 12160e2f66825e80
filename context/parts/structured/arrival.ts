import type { Memory } from "../../../extension/memory.ts";

export interface ArrivalOptions {
  readonly memory: Pick<Memory, "contextDueBy">;
  readonly fault: (where: string, thrown: unknown) => void;
}

/**
 * Makes requests wait for an announced context. The daemon sends nothing else before it, but an extension may start a run
 * as soon as the session begins; without the wait, the model would answer without the past.
 */
export class Arrival {
  readonly #options: ArrivalOptions;
  readonly #waiting = new Set<() => void>();

  constructor(options: ArrivalOptions) {
    this.#options = options;
  }

  /** Resolves when the context has arrived or the wait ends. `undefined`: nothing to wait for. */
  wait(signal: AbortSignal | undefined): Promise<void> | undefined {
    const { memory, fault } = this.#options;
    if (memory.contextDueBy === undefined || signal?.aborted === true) return undefined;
    const leftMs = Math.max(0, memory.contextDueBy - performance.now());
    return new Promise((resolve) => {
      const end = (): void => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", end);
        this.#waiting.delete(end);
        resolve();
      };
      const timer = setTimeout(() => {
        if (memory.contextDueBy !== undefined) {
          fault("context", new Error("The announced context did not arrive; requests are made without it."));
        }
        this.settle();
        end();
      }, leftMs);
      timer.unref();
      signal?.addEventListener("abort", end, { once: true });
      this.#waiting.add(end);
    });
  }

  /** Call when the context has arrived, or is no longer expected. */
  settle(): void {
    this.#options.memory.contextDueBy = undefined;
    this.release();
  }

  /** Ends all waits. */
  release(): void {
    for (const end of this.#waiting) end();
  }
}
