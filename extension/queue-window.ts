import type { AgentMessage } from "./pi-types.ts";

/**
 * Knows whether a message that pi has taken out of its queue may still be on its way into the transcript: pi takes
 * messages out where a turn ends or a run begins, and writes them before the next request is made.
 */
export class QueueWindow {
  /** Calls of the last answer whose results have not come. */
  #calls = 0;
  #closed: { readonly promise: Promise<void>; readonly resolve: () => void } | undefined;

  /** Resolves when no message is on its way. Undefined: none is. */
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
