import type { Delivery } from "../../protocol/delivery.ts";
import { isBeforeInsertion } from "./delivery-state.ts";

/** The longest that a timer can be set for. */
const maxTimerMs = 2_147_483_647;

/** Says when a push that does not stand in the transcript has outlived its time. Its timers keep no process alive. */
export class Expiry {
  readonly #onDue: (delivery: Delivery) => void;
  readonly #timers = new Map<string, NodeJS.Timeout>();

  constructor(onDue: (delivery: Delivery) => void) {
    this.#onDue = onDue;
  }

  /** Follows a delivery, from its acceptance and behind each change. */
  watch(delivery: Delivery): void {
    const { deliveryId, expiresAt } = delivery;
    if (expiresAt === undefined || !isBeforeInsertion(delivery)) this.#forget(deliveryId);
    else if (!this.#timers.has(deliveryId)) this.#arm(delivery, expiresAt);
  }

  close(): void {
    for (const timer of this.#timers.values()) clearTimeout(timer);
    this.#timers.clear();
  }

  #arm(delivery: Delivery, expiresAt: number): void {
    const fire = (): void => {
      // A timer may come early, and a clock may be set back.
      if (Date.now() < expiresAt) this.#arm(delivery, expiresAt);
      else this.#onDue(delivery);
    };
    const inMs = Math.min(Math.max(expiresAt - Date.now(), 0), maxTimerMs);
    this.#timers.set(delivery.deliveryId, setTimeout(fire, inMs).unref());
  }

  #forget(deliveryId: string): void {
    clearTimeout(this.#timers.get(deliveryId));
    this.#timers.delete(deliveryId);
  }
}
