import type { Delivery } from "../../protocol/delivery.ts";
import { isBeforeInsertion } from "../../protocol/delivery-machine.ts";

/** The longest delay of a timer. */
const maxTimerMs = 2_147_483_647;
/** Delay before a failed withdrawal is repeated. */
const againMs = 1_000;

/** Reports when a push expires before it is in the transcript. Its timers keep no process alive. */
export class Expiry {
  readonly #onDue: (delivery: Delivery) => Promise<void> | void;
  readonly #timers = new Map<string, NodeJS.Timeout>();

  /** `onDue` never rejects. */
  constructor(onDue: (delivery: Delivery) => Promise<void> | void) {
    this.#onDue = onDue;
  }

  /** Follows a delivery from its acceptance and after each change. */
  watch(delivery: Delivery): void {
    const { deliveryId, expiresAt } = delivery;
    if (expiresAt === undefined || !isBeforeInsertion(delivery)) this.forget(deliveryId);
    else if (!this.#timers.has(deliveryId)) this.#arm(delivery, expiresAt);
  }

  forget(deliveryId: string): void {
    clearTimeout(this.#timers.get(deliveryId));
    this.#timers.delete(deliveryId);
  }

  close(): void {
    for (const timer of this.#timers.values()) clearTimeout(timer);
    this.#timers.clear();
  }

  /** Reads the wall clock once, then measures with a monotonic clock. */
  #arm(delivery: Delivery, expiresAt: number): void {
    const dueAt = performance.now() + Math.max(expiresAt - Date.now(), 0);
    this.#wait(delivery, dueAt, dueAt - performance.now());
  }

  #wait(delivery: Delivery, dueAt: number, inMs: number): void {
    const { deliveryId } = delivery;
    const fire = async (): Promise<void> => {
      // A timer can fire early, and a long wait needs several timers.
      const leftMs = dueAt - performance.now();
      if (leftMs <= 0) await this.#onDue(delivery);
      if (this.#timers.get(deliveryId) === timer) this.#wait(delivery, dueAt, leftMs <= 0 ? againMs : leftMs);
    };
    const timer = setTimeout(() => void fire(), Math.min(Math.ceil(inMs), maxTimerMs)).unref();
    this.#timers.set(deliveryId, timer);
  }
}
