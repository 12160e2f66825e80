import { orAborted } from "./abortable.ts";

/**
 * Holds a reply at one point until a test opens it: `answer("Hel", hold(gate), "lo")`.
 *
 * One gate may stand in several replies: they all wait at it, and opening it lets all of them pass, now and later.
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
   * Resolves when the provider first stands at the gate; what precedes it in the reply has then been handed to the
   * system. Rejects when the provider is closed before, if the gate is in a step of its script. Never unhandled.
   */
  get reached(): Promise<void> {
    return this.#reached.promise;
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** How many replies wait here now. */
  get waiting(): number {
    return this.#waiting;
  }

  /** Lets everything pass. Idempotent. */
  open(): void {
    this.#isOpen = true;
    this.#opened.resolve();
  }

  /** Says that no reply will come here any more: `reached` rejects, unless it was. */
  abandon(reason: Error): void {
    this.#reached.reject(reason);
  }

  /** Waits until the gate is open. Rejects with the signal's reason when that aborts first. */
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
