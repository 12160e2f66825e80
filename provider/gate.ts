import { orAborted } from "./abortable.ts";

/**
 * Holds a reply at one point until a test opens it: `answer("Hel", hold(gate), "lo")`.
 *
 * One gate may be in several replies: they all wait at it, and opening it lets all of them continue, now and later.
 */
export class Gate {
  readonly #opened = Promise.withResolvers<void>();
  readonly #reached = Promise.withResolvers<void>();
  #isOpen = false;
  #waiting = 0;

  constructor() {
    this.#reached.promise.catch(() => {});
  }

  /**
   * Resolves when the provider first reaches the gate; the system has then accepted the preceding part of the reply.
   * Rejects if the provider is closed first and the gate is in a step of its script. Never unhandled.
   */
  get reached(): Promise<void> {
    return this.#reached.promise;
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** How many replies are waiting here. */
  get waiting(): number {
    return this.#waiting;
  }

  /** Lets all replies continue. Idempotent. */
  open(): void {
    this.#isOpen = true;
    this.#opened.resolve();
  }

  /** No reply will come here any more: `reached` rejects unless it has resolved. */
  abandon(reason: Error): void {
    this.#reached.reject(reason);
  }

  /** Waits until the gate is open. Rejects with the signal's reason if the signal aborts first. */
  async pass(signal: AbortSignal): Promise<void> {
    this.#reached.resolve();
    this.#waiting += 1;
    try {
      await orAborted(this.#opened.promise, signal);
    } finally {
      this.#waiting -= 1;
    }
  }
}
