import type { Delivery, WaitUntil } from "../../protocol/delivery.ts";
import { endsWait } from "../../protocol/delivery-progress.ts";
import { WireError } from "../../protocol/errors.ts";
import { deferred } from "../lib/deferred.ts";

export interface WaitRequest {
  readonly deliveryId: string;
  readonly until: WaitUntil;
  readonly timeoutMs: number;
  /** Ends the wait when its caller has gone. */
  readonly signal: AbortSignal;
  /** Returns the current delivery, for the error at the deadline. */
  readonly now: () => Promise<Delivery>;
}

interface Waiter {
  readonly until: WaitUntil;
  readonly resolve: (delivery: Delivery) => void;
  readonly reject: (error: unknown) => void;
}

/** Calls that wait for a delivery to reach a state. */
export class Waiters {
  readonly #waiters = new Map<string, Set<Waiter>>();

  async wait({ deliveryId, until, timeoutMs, signal, now }: WaitRequest): Promise<Delivery> {
    const { promise, resolve, reject } = deferred<Delivery>();
    const waiter: Waiter = { until, resolve, reject };
    const waiting = this.#waiters.get(deliveryId) ?? new Set();
    this.#waiters.set(deliveryId, waiting.add(waiter));
    const late = (delivery: Delivery): void => {
      const message = `The delivery was not ${until} within ${timeoutMs} ms; it is ${delivery.state}. Nothing was cancelled.`;
      reject(new WireError("deadline_exceeded", message, { delivery }));
    };
    const timer = setTimeout(() => void now().then(late, reject), timeoutMs);
    const onAbort = (): void => reject(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    if (signal.aborted) onAbort();
    try {
      return await promise;
    } finally {
      clearTimeout(timer);
      signal.removeEventListener("abort", onAbort);
      waiting.delete(waiter);
      if (waiting.size === 0) this.#waiters.delete(deliveryId);
    }
  }

  notify(delivery: Delivery): void {
    for (const { until, resolve } of this.#waiters.get(delivery.deliveryId) ?? []) {
      if (endsWait(delivery, until)) resolve(delivery);
    }
  }

  /** Rejects the waits of a delivery that was not accepted. */
  fail(deliveryId: string, error: unknown): void {
    for (const { reject } of this.#waiters.get(deliveryId) ?? []) reject(error);
  }
}
