import type { AgentMessage } from "./pi-types.ts";

/**
 * Tracks whether a message may have left pi's queue without being in the transcript yet: pi takes messages out at the
 * end of a turn or the start of a run, and writes them before the next request.
 */
export class QueueWindow {
  /** Tool calls of the last answer without a result. */
  #calls = 0;
  #closed: { readonly promise: Promise<void>; readonly resolve: () => void } | undefined;

  /** Resolves when no message is between queue and transcript. `undefined`: none is. */
  get closed(): Promise<void> | undefined {
    return this.#closed?.promise;
  }

  messageEnded(message: AgentMessage): void {
    if (message.role === "assistant") this.#calls = message.content.filter(({ type }) => type === "toolCall").length;
    else if (message.role === "toolResult") this.#calls -= 1;
    else return;
    if (this.#calls <= 0) this.open();
  }

  open(): void {
    if (this.#closed !== undefined) return;
    let resolve = (): void => {};
    const promise = new Promise<void>((done) => {
      resolve = done;
    });
    this.#closed = { promise, resolve };
  }

  /** A request is made, or the run is over. */
  close(): void {
    this.#closed?.resolve();
    this.#closed = undefined;
  }
}
