import type { Delivery, WaitUntil } from "../protocol/delivery.ts";
import { endsWait, hasReached, isTerminal } from "../protocol/delivery-progress.ts";

/** What this client knows of one delivery: the newest of what calls and notifications brought, in whatever order. */
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

/** The deliveries that some object of the caller's still refers to. */
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

/** Whether a delivery was ever in the state waited for, or cannot be without a new start, or may still come to it. */
export function verdict(delivery: Delivery, until: WaitUntil): "reached" | "unmet" | "open" {
  if (hasReached(delivery.state, until)) return "reached";
  if (until === "inserted" && delivery.insertedAt !== undefined) return "reached";
  if (delivery.history.some((step) => hasReached(step.state, until))) return "reached";
  return endsWait(delivery, until) ? "unmet" : "open";
}

/**
 * Whether `next` is newer than `current`. Answers and notifications can overtake each other, and clocks can be set
 * back, so what counts is the length of the history, which only grows until it is full; then the time.
 */
export function supersedes(next: Delivery, current: Delivery): boolean {
  if (isTerminal(current) !== isTerminal(next)) return isTerminal(next);
  if (next.history.length !== current.history.length) return next.history.length > current.history.length;
  return next.updatedAt >= current.updatedAt;
}
