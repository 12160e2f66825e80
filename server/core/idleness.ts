import { WireError } from "../../protocol/errors.ts";
import { unlessAborted, within } from "../lib/deadline.ts";
import { type Deferred, deferred } from "../lib/deferred.ts";

/** Tells when nothing is under way in a session. */
export class Idleness {
  readonly #isIdle: () => boolean;
  readonly #waiting = new Set<Deferred<void>>();
  #check: NodeJS.Immediate | undefined;

  constructor(isIdle: () => boolean) {
    this.#isIdle = isIdle;
  }

  /** Something has changed that it depends on. It is looked at a moment later: what follows at once comes first. */
  changed(): void {
    if (this.#waiting.size === 0) return;
    this.#check ??= setImmediate(() => {
      this.#check = undefined;
      if (this.#waiting.size === 0 || !this.#isIdle()) return;
      for (const waiter of this.#waiting) waiter.resolve();
    });
  }

  /** Resolves when the session is idle. Throws `deadline_exceeded`, the signal's reason, or what {@link close} says. */
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

  /** The session is over: whoever waits hears of it. */
  close(why: WireError): void {
    for (const waiter of this.#waiting) waiter.reject(why);
  }
}
