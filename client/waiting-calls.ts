import type { Repeat } from "./repeatable.ts";

/** One call of the client, over all connections on which it is sent. */
export interface PendingCall {
  /** Calls are sent, and repeated, in this order. */
  readonly order: number;
  readonly method: string;
  readonly params: unknown;
  readonly signal: AbortSignal | undefined;
  readonly repeat: Repeat;
  readonly onAnswer: ((result: unknown) => void) | undefined;
  readonly outcome: PromiseWithResolvers<unknown>;
  /** How often it was sent. */
  sends: number;
}

/** Calls that wait for a connection. A call's signal removes it. */
export class WaitingCalls {
  readonly #calls = new Map<PendingCall, { readonly chars: number; readonly abort: () => void }>();
  #chars = 0;

  get count(): number {
    return this.#calls.size;
  }

  /** The sum of the sizes of the calls that were never sent. */
  get chars(): number {
    return this.#chars;
  }

  add(call: PendingCall, chars = 0): void {
    const { signal } = call;
    if (signal?.aborted === true) {
      call.outcome.reject(signal.reason);
      return;
    }
    const abort = (): void => {
      this.#remove(call);
      call.outcome.reject(signal?.reason);
    };
    this.#calls.set(call, { chars, abort });
    this.#chars += chars;
    signal?.addEventListener("abort", abort, { once: true });
  }

  /** Removes and returns all calls, in the order in which they were made. */
  takeAll(): readonly PendingCall[] {
    const calls = [...this.#calls.keys()].sort((a, b) => a.order - b.order);
    for (const call of calls) this.#remove(call);
    return calls;
  }

  #remove(call: PendingCall): void {
    const entry = this.#calls.get(call);
    if (entry === undefined) return;
    this.#calls.delete(call);
    this.#chars -= entry.chars;
    call.signal?.removeEventListener("abort", entry.abort);
  }
}
