import type { Delivery, WaitUntil } from "../protocol/delivery.ts";
import { endsWait, hasReached, isTerminal } from "../protocol/delivery-progress.ts";

/** The newest record of one delivery that this client got by a call or a notification, in any order. */
export class KnownDelivery {
  readonly #watchers = new Set<(delivery: Delivery) => void>();
  #current: Delivery | undefined;

  get current(): Delivery | undefined {
    return this.#current;
  }

  learn(delivery: Delivery): void {
    if (this.#current !== undefined && !supersedes(delivery, this.#current)) return;
    this.#current = delivery;
    for (const watcher of [...this.#watchers]) watcher(delivery);
  }

  /** Calls `watcher` at each change until the returned function is called. */
  watch(watcher: (delivery: Delivery) => void): () => void {
    this.#watchers.add(watcher);
    return () => void this.#watchers.delete(watcher);
  }
}

/** The deliveries to which an object of the caller still refers. */
export class KnownDeliveries {
  readonly #known = new Map<string, WeakRef<KnownDelivery>>();
  readonly #collected = new FinalizationRegistry<string>((id) => {
    if (this.#known.get(id)?.deref() === undefined) this.#known.delete(id);
  });

  of(deliveryId: string): KnownDelivery {
    const existing = this.#known.get(deliveryId)?.deref();
    if (existing !== undefined) return existing;
    const known = new KnownDelivery();
    this.#known.set(deliveryId, new WeakRef(known));
    this.#collected.register(known, deliveryId);
    return known;
  }

  learn(delivery: Delivery): void {
    this.#known.get(delivery.deliveryId)?.deref()?.learn(delivery);
  }
}

/** Whether a delivery has reached a state, cannot reach it unless it is sent again, or may still reach it. */
export function verdict(delivery: Delivery, until: WaitUntil): "reached" | "unmet" | "open" {
  if (hasReached(delivery.state, until)) return "reached";
  if (until === "inserted" && delivery.insertedAt !== undefined) return "reached";
  if (delivery.history.some((step) => hasReached(step.state, until))) return "reached";
  return endsWait(delivery, until) ? "unmet" : "open";
}

/**
 * Whether `next` is newer than `current`. Answers and notifications can overtake each other and clocks can be set back, so
 * the length of the history decides, which only grows until it is full; then the time.
 */
export function supersedes(next: Delivery, current: Delivery): boolean {
  if (isTerminal(current) !== isTerminal(next)) return isTerminal(next);
  if (next.history.length !== current.history.length) return next.history.length > current.history.length;
  return next.updatedAt >= current.updatedAt;
}
