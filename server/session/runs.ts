import { type Deferred, deferred } from "../lib/deferred.ts";

/** Knows when runs begin and end, for those who wait for it. */
export class Runs {
  #started = 0;
  #settled: Deferred<void> | undefined;
  #next = deferred<void>();

  /** How many there have been. */
  get started(): number {
    return this.#started;
  }

  /** Resolves when the next one begins. */
  get next(): Promise<void> {
    return this.#next.promise;
  }

  /** Resolves when none is on. */
  get settled(): Promise<void> {
    return this.#settled?.promise ?? Promise.resolve();
  }

  begin(): void {
    this.#started += 1;
    this.#settled = deferred();
    this.#next.resolve();
    this.#next = deferred();
  }

  end(): void {
    this.#settled?.resolve();
    this.#settled = undefined;
  }
}
