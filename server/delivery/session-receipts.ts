import { within } from "../lib/deadline.ts";

/** A store, or a file, that does not answer must not keep a session silent for longer. */
const maxSilenceMs = 2_000;

/**
 * Tells receipts in the order in which they came about, each when it is on disk: what was told is still true after a
 * `kill -9` of the daemon.
 */
export class Receipts {
  #last: Promise<void> = Promise.resolve();
  #waiting = 0;

  /** Calls `tell` when `ready` is settled, whatever came of it, and behind all that were given before. */
  tell(ready: Promise<unknown> | undefined, tell: () => void): void {
    if (ready === undefined && this.#waiting === 0) {
      tell();
      return;
    }
    this.#waiting += 1;
    const before = this.#last;
    this.#last = (async () => {
      if (ready !== undefined) await within(ready, maxSilenceMs).catch(() => {});
      await before;
      this.#waiting -= 1;
      tell();
    })();
  }

  /** Resolves when all that was given has been told. */
  async told(): Promise<void> {
    while (this.#waiting > 0) await this.#last;
  }
}
