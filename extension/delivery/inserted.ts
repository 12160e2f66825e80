import type { InsertedPush } from "../memory.ts";
import type { MarkedEntry } from "./branch.ts";

/**
 * Pushes in the transcript that are not done: each request is searched for them until they are answered, or until the
 * run that delivered them is over. The map outlives this object because pi re-creates modules.
 */
export class InsertedPushes {
  readonly #pushes: Map<string, InsertedPush>;

  constructor(pushes: Map<string, InsertedPush>) {
    this.#pushes = pushes;
  }

  /** Has no effect if the push is already known. */
  add(entry: MarkedEntry): void {
    if (!this.#pushes.has(entry.deliveryId)) this.#pushes.set(entry.deliveryId, { ...entry, isDelivered: false });
  }

  get(deliveryId: string): InsertedPush | undefined {
    return this.#pushes.get(deliveryId);
  }

  /** Whether the entry carries one of these pushes. */
  carries(entryId: string): boolean {
    for (const push of this.#pushes.values()) if (push.entryId === entryId) return true;
    return false;
  }

  undelivered(): InsertedPush[] {
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

  /** The run is over: delivered pushes will not be answered any more. */
  runOver(): void {
    for (const [id, { isDelivered }] of this.#pushes) if (isDelivered) this.#pushes.delete(id);
  }

  clear(): void {
    this.#pushes.clear();
  }
}
