/** Whoever gets a session's frames. */
export interface Subscriber {
  readonly id: string;
  readonly gone: AbortSignal;
  /** Queues a frame. Never blocks, never throws. */
  send(frame: Buffer): void;
}

/** The standing orders for one session's frames. */
export class Subscriptions {
  readonly #subscribers = new Map<string, { readonly subscriber: Subscriber; readonly onGone: () => void }>();

  /** Adds a subscriber until it goes. Adding it again changes nothing. */
  add(subscriber: Subscriber): void {
    if (subscriber.gone.aborted || this.#subscribers.has(subscriber.id)) return;
    const onGone = (): void => void this.remove(subscriber.id);
    this.#subscribers.set(subscriber.id, { subscriber, onGone });
    subscriber.gone.addEventListener("abort", onGone, { once: true });
  }

  /** Whether there was one to remove. */
  remove(subscriberId: string): boolean {
    const order = this.#subscribers.get(subscriberId);
    order?.subscriber.gone.removeEventListener("abort", order.onGone);
    return this.#subscribers.delete(subscriberId);
  }

  publish(frame: Buffer): void {
    for (const { subscriber } of this.#subscribers.values()) subscriber.send(frame);
  }
}
