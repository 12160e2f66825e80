import type { By, Delivery, Prompt } from "../../client/browser.ts";
import { pushState } from "./entry-rows.ts";
import type { Who } from "./items.ts";
import { unknownWho, whoOf } from "./notes.ts";
import type { Cell } from "./rows.ts";

/** Who wrote the users' messages of a session, and the state of its pushes: the daemon knows it, the entries do not. */
export class Authors {
  readonly #ownId: string;
  readonly #byEntry = new Map<string, By>();
  readonly #deliveries = new Map<string, Delivery>();
  readonly #pushes = new Map<string, Cell[]>();

  /** `ownId`: the client id of this page. */
  constructor(ownId: string) {
    this.#ownId = ownId;
  }

  /** `by`: the client that an event names. */
  who(entryId: string | undefined, by: By | undefined): Who {
    const known = by ?? (entryId === undefined ? undefined : this.#byEntry.get(entryId));
    return known === undefined ? unknownWho : whoOf(known, this.#ownId);
  }

  delivery(deliveryId: string): Delivery | undefined {
    return this.#deliveries.get(deliveryId);
  }

  addPush(deliveryId: string, row: Cell): void {
    this.#pushes.set(deliveryId, [...(this.#pushes.get(deliveryId) ?? []), row]);
  }

  prompts(prompts: readonly Prompt[]): void {
    for (const { entryId, by } of prompts)
      if (entryId !== undefined && by !== undefined) this.#byEntry.set(entryId, by);
  }

  updated(delivery: Delivery): void {
    this.#deliveries.set(delivery.deliveryId, delivery);
    for (const { item } of this.#pushes.get(delivery.deliveryId) ?? []) {
      if (item.value.kind === "push") item.value = { ...item.value, ...pushState(delivery) };
    }
  }
}
