import type { By, Delivery, Prompt } from "../../client/browser.ts";
import { pushState } from "./entry-rows.ts";
import type { Item, Who } from "./items.ts";
import { whoOf } from "./notes.ts";
import type { Cell } from "./rows.ts";

/** Who wrote the users' messages of a session, and the state of its pushes: the daemon knows it, the entries do not. */
export class Authors {
  readonly #ownId: string;
  readonly #byEntry = new Map<string, By>();
  readonly #deliveries = new Map<string, Delivery>();
  /** The rows that can change, by the id of the user's entry or of the delivery. */
  readonly #rows = new Map<string, Cell[]>();

  /** `ownId`: the client id of this page. */
  constructor(ownId: string) {
    this.#ownId = ownId;
  }

  /** `by`: the client that an event names. */
  who(entryId: string | undefined, by: By | undefined): Who {
    return whoOf(by ?? this.#byEntry.get(entryId ?? ""), this.#ownId);
  }

  delivery(deliveryId: string): Delivery | undefined {
    return this.#deliveries.get(deliveryId);
  }

  /** `id`: of the user's entry, or of the delivery. */
  add(id: string, row: Cell): void {
    this.#rows.set(id, [...(this.#rows.get(id) ?? []), row]);
  }

  /** Called before a load, which makes new rows. */
  forgetRows(): void {
    this.#rows.clear();
  }

  prompts(prompts: readonly Prompt[]): void {
    for (const { entryId, by } of prompts) {
      if (entryId === undefined || by === undefined) continue;
      this.#byEntry.set(entryId, by);
      this.#change("user", entryId, { who: whoOf(by, this.#ownId) });
    }
  }

  updated(delivery: Delivery): void {
    this.#deliveries.set(delivery.deliveryId, delivery);
    this.#change("push", delivery.deliveryId, pushState(delivery));
  }

  #change<K extends Item["kind"]>(kind: K, id: string, fields: Partial<Extract<Item, { readonly kind: K }>>): void {
    for (const { item } of this.#rows.get(id) ?? [])
      if (item.value.kind === kind) item.value = { ...item.value, ...fields } as Item;
  }
}
