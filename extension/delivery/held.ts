import type { HeldPush } from "../../protocol/link-inward.ts";

/** State of a push that is not in the transcript yet. */
export type Custody =
  /** Waits until it is due. */
  | { readonly kind: "waiting" }
  /** Left by an aborted or failed run: goes with the next run or prompt, but starts none. */
  | { readonly kind: "parked" }
  /** Handed to pi, as a draft or as the message that starts a run, and not yet seen in the transcript. */
  | { readonly kind: "offered"; readonly by: "draft" | "run" };

export interface HeldItem {
  readonly push: HeldPush;
  readonly custody: Custody;
  /** Number of runs that it failed to start. */
  readonly lostStarts: number;
  /** Released after it was handed to pi: removed once pi proves not to have it. */
  readonly isReleased?: boolean;
}

/**
 * Pushes that the helper keeps until pi has them, in order of arrival. An id leaves the list only when its entry was
 * seen or it is released. The map outlives this object because pi re-creates modules.
 */
export class HeldList {
  readonly #items: Map<string, HeldItem>;

  constructor(items: Map<string, HeldItem>) {
    this.#items = items;
  }

  /** Has no effect if the push is already held. */
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

  /** Ids of pushes offered to pi in one of these ways. */
  offered(...by: readonly ("draft" | "run")[]): Set<string> {
    const ids = new Set<string>();
    for (const [id, { custody }] of this.#items) if (custody.kind === "offered" && by.includes(custody.by)) ids.add(id);
    return ids;
  }

  /** Releases a push. `pending`: it was offered to pi, so the result is not known yet. `unknown`: it is not held. */
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

  /** Removes and returns released pushes that pi does not have. */
  takeReleased(): string[] {
    const ids = [...this.#items].flatMap(([id, { custody, isReleased }]) =>
      isReleased === true && custody.kind !== "offered" ? [id] : [],
    );
    for (const id of ids) this.#items.delete(id);
    return ids;
  }

  /** Removes a push whose entry was seen. */
  seen(deliveryId: string): void {
    this.#items.delete(deliveryId);
  }

  offer(deliveryIds: Iterable<string>, by: "draft" | "run"): void {
    for (const id of deliveryIds) this.#change(id, { custody: { kind: "offered", by } });
  }

  park(deliveryIds: Iterable<string>): void {
    for (const id of deliveryIds) this.#change(id, { custody: { kind: "parked" } });
  }

  /** Makes a push wait again that was offered to pi and not taken. */
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
