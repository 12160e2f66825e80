import type { HeldPush } from "../../protocol/link.ts";

/** Where a push is that stands not in the transcript yet. */
export type Custody =
  /** It waits for its moment. */
  | { readonly kind: "waiting" }
  /** An abort or a failed run has left it: it goes with the next run or prompt, and starts none by itself. */
  | { readonly kind: "parked" }
  /** pi was given it and it was not seen in the transcript yet: as a boundary's draft, or as the message that starts a run. */
  | { readonly kind: "offered"; readonly by: "draft" | "run" };

export interface HeldItem {
  readonly push: HeldPush;
  readonly custody: Custody;
  /** How many runs it was to start that never came to be. */
  readonly lostStarts: number;
  /** It was taken back after pi was given it: it is given up when it turns out that pi does not have it. */
  readonly isReleased?: boolean;
}

/**
 * The pushes that the helper keeps until pi has them, in the order of their arrival. An id leaves the list only when its
 * entry was seen, or when it is given up. The map outlives this object: pi re-creates modules.
 */
export class HeldList {
  readonly #items: Map<string, HeldItem>;

  constructor(items: Map<string, HeldItem>) {
    this.#items = items;
  }

  /** One that is held already stays as it is. */
  add(push: HeldPush): void {
    if (this.#items.has(push.deliveryId)) return;
    const custody: Custody = push.parked === true ? { kind: "parked" } : { kind: "waiting" };
    this.#items.set(push.deliveryId, { push, custody, lostStarts: 0 });
  }

  has(deliveryId: string): boolean {
    return this.#items.has(deliveryId);
  }

  items(): HeldItem[] {
    return [...this.#items.values()];
  }

  ids(): string[] {
    return [...this.#items.keys()];
  }

  /** The ids that pi was given in one of these ways. */
  offered(...by: readonly ("draft" | "run")[]): Set<string> {
    const ids = new Set<string>();
    for (const [id, { custody }] of this.#items) if (custody.kind === "offered" && by.includes(custody.by)) ids.add(id);
    return ids;
  }

  /**
   * Gives up one that pi was not given yet. `pending`: pi was given it, so that it has to turn out first. `unknown`: it is
   * not held.
   */
  release(deliveryId: string): "released" | "pending" | "unknown" {
    const item = this.#items.get(deliveryId);
    if (item === undefined) return "unknown";
    if (item.custody.kind === "offered") {
      this.#change(deliveryId, { isReleased: true });
      return "pending";
    }
    this.#items.delete(deliveryId);
    return "released";
  }

  /** Takes out those that were released and turned out not to be in pi. */
  takeReleased(): string[] {
    const ids = [...this.#items].flatMap(([id, { custody, isReleased }]) =>
      isReleased === true && custody.kind !== "offered" ? [id] : [],
    );
    for (const id of ids) this.#items.delete(id);
    return ids;
  }

  /** Takes out one whose entry was seen. */
  seen(deliveryId: string): void {
    this.#items.delete(deliveryId);
  }

  offer(deliveryIds: Iterable<string>, by: "draft" | "run"): void {
    for (const id of deliveryIds) this.#change(id, { custody: { kind: "offered", by } });
  }

  park(deliveryIds: Iterable<string>): void {
    for (const id of deliveryIds) this.#change(id, { custody: { kind: "parked" } });
  }

  /** pi was given it and does not have it: it waits again. */
  takeBack(deliveryId: string): void {
    const item = this.#items.get(deliveryId);
    if (item?.custody.kind !== "offered") return;
    const lostStarts = item.lostStarts + (item.custody.by === "run" ? 1 : 0);
    this.#change(deliveryId, { custody: { kind: "waiting" }, lostStarts });
  }

  clear(): void {
    this.#items.clear();
  }

  #change(deliveryId: string, change: Partial<Pick<HeldItem, "custody" | "lostStarts" | "isReleased">>): void {
    const item = this.#items.get(deliveryId);
    if (item !== undefined) this.#items.set(deliveryId, { ...item, ...change });
  }
}
