import { WireError } from "../../protocol/errors.ts";
import { unlessAborted, within } from "../lib/deadline.ts";
import { type Deferred, deferred } from "../lib/deferred.ts";
import type { StoredPrompt } from "../store/prompts.ts";
import type { RunEnd } from "./runs.ts";

/** An ended prompt, with its run's outcome if that is still known. */
export interface Waited {
  readonly prompt: StoredPrompt;
  readonly end: RunEnd | undefined;
}

interface Wait {
  readonly promptId: string;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
  /** The prompt's run, if known at the deadline. */
  readonly runId: () => string | undefined;
}

/** Calls that wait for prompts to end. */
export class PromptWaiters {
  readonly #waiting = new Map<string, Set<Deferred<Waited>>>();
  #next = deferred<void>();
  #closed: WireError | undefined;

  /** Resolves at the next change of any prompt. */
  next(): Promise<void> {
    return this.#next.promise;
  }

  /** A prompt has changed. */
  changed(): void {
    this.#next.resolve();
    this.#next = deferred();
  }

  /** Throws `deadline_exceeded`, the signal's reason, or the error passed to {@link fail}. */
  async wait({ promptId, timeoutMs, signal, runId }: Wait): Promise<Waited> {
    if (this.#closed !== undefined) throw this.#closed;
    const waiter = deferred<Waited>();
    const waiters = this.#waiting.get(promptId) ?? new Set();
    this.#waiting.set(promptId, waiters.add(waiter));
    try {
      const waited = await unlessAborted(within(waiter.promise, timeoutMs), signal);
      if (waited.kind === "done") return waited.value;
      const why = `The prompt's run has not ended within ${timeoutMs} ms. Nothing was cancelled.`;
      throw new WireError("deadline_exceeded", why, { promptId, runId: runId() });
    } finally {
      waiters.delete(waiter);
      if (waiters.size === 0 && this.#waiting.get(promptId) === waiters) this.#waiting.delete(promptId);
    }
  }

  notify(prompt: StoredPrompt, end: RunEnd | undefined): void {
    for (const waiter of this.#waiting.get(prompt.promptId) ?? []) waiter.resolve({ prompt, end });
  }

  /** Rejects all waits. */
  fail(why: WireError): void {
    this.#closed = why;
    this.#next.reject(why);
    for (const waiters of this.#waiting.values()) for (const waiter of waiters) waiter.reject(why);
  }
}
