import { within } from "../lib/deadline.ts";

/** A store or file that does not answer delays a session's notifications no longer than this. */
const maxSilenceMs = 2_000;

/** Sends receipts in order, each after it is on disk: a receipt stays true after a `kill -9` of the daemon. */
export class Receipts {
  #last: Promise<void> = Promise.resolve();
  #waiting = 0;

  /** Calls `tell` when `ready` is settled, whether fulfilled or rejected, and after all earlier calls. */
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

  /** Resolves when all earlier calls have been made. */
  async told(): Promise<void> {
    while (this.#waiting > 0) await this.#last;
  }
}
