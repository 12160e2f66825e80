import { WireError } from "../../protocol/errors.ts";
import { unlessAborted, within } from "../lib/deadline.ts";
import { type Deferred, deferred } from "../lib/deferred.ts";

/** Reports when a session has no work in progress. */
export class Idleness {
  readonly #isIdle: () => boolean;
  readonly #waiting = new Set<Deferred<void>>();
  #check: NodeJS.Immediate | undefined;

  constructor(isIdle: () => boolean) {
    this.#isIdle = isIdle;
  }

  get isIdle(): boolean {
    return this.#isIdle();
  }

  /**
   * Call this when a condition has changed. It is checked a moment later, so that immediate follow-ups come first.
   */
  changed(): void {
    if (this.#waiting.size === 0) return;
    this.#check ??= setImmediate(() => {
      this.#check = undefined;
      if (this.#waiting.size === 0 || !this.#isIdle()) return;
      for (const waiter of this.#waiting) waiter.resolve();
    });
  }

  /**
   * Resolves when the session is idle. Throws `deadline_exceeded`, the signal's reason, or the error passed to {@link
   * close}.
   */
  async wait(timeoutMs: number, signal: AbortSignal): Promise<void> {
    if (this.#isIdle()) return;
    const waiter = deferred<void>();
    this.#waiting.add(waiter);
    try {
      const waited = await unlessAborted(within(waiter.promise, timeoutMs), signal);
      if (waited.kind === "done") return;
      throw new WireError("deadline_exceeded", `The session was not idle within ${timeoutMs} ms.`);
    } finally {
      this.#waiting.delete(waiter);
    }
  }

  /** Rejects all waits, because the session is over. */
  close(why: WireError): void {
    for (const waiter of this.#waiting) waiter.reject(why);
  }
}
