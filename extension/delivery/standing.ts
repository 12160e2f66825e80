import type { StandingPush } from "../memory.ts";
import type { MarkedEntry } from "./branch.ts";

/**
 * The pushes that stand in the transcript and are not done: they are looked for in every request until they are answered,
 * or until the run that delivered them is over. The map outlives this object: pi re-creates modules.
 */
export class StandingList {
  readonly #pushes: Map<string, StandingPush>;

  constructor(pushes: Map<string, StandingPush>) {
    this.#pushes = pushes;
  }

  /** One that is known already stays as it is. */
  add(entry: MarkedEntry): void {
    if (!this.#pushes.has(entry.deliveryId)) this.#pushes.set(entry.deliveryId, { ...entry, isDelivered: false });
  }

  get(deliveryId: string): StandingPush | undefined {
    return this.#pushes.get(deliveryId);
  }

  /** Whether this entry is one of them. */
  carries(entryId: string): boolean {
    for (const push of this.#pushes.values()) if (push.entryId === entryId) return true;
    return false;
  }

  undelivered(): StandingPush[] {
    return [...this.#pushes.values()].filter(({ isDelivered }) => !isDelivered);
  }

  delivered(deliveryIds: Iterable<string>): void {
    for (const id of deliveryIds) {
      const push = this.#pushes.get(id);
      if (push !== undefined) this.#pushes.set(id, { ...push, isDelivered: true });
    }
  }

  done(deliveryIds: Iterable<string>): void {
    for (const id of deliveryIds) this.#pushes.delete(id);
  }

  /** A run is over: what it has delivered gets no answer any more. */
  runOver(): void {
    for (const [id, { isDelivered }] of this.#pushes) if (isDelivered) this.#pushes.delete(id);
  }

  clear(): void {
    this.#pushes.clear();
  }
}
