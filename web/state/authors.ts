import type { Delivery, Prompt } from "../../client/browser.ts";
import { pushState } from "./entry-rows.ts";
import type { Who } from "./items.ts";
import { unknownWho, whoOf } from "./notes.ts";
import type { Cell } from "./rows.ts";

/** A prompt's text as the daemon lists it: the beginning. */
const knownChars = 1_000;
/** Prompts that no message was found for, at most. */
const maxPrompts = 200;

/** Who wrote the users' messages of a session, and the state of its pushes: the daemon knows it, the entries do not. */
export class Authors {
  readonly #ownId: string;
  readonly #byEntry = new Map<string, Who>();
  /** Prompts without a message yet, oldest first. */
  readonly #prompts = new Map<string, Prompt>();
  /** Messages of now whose author is not known yet. */
  #waiting: Cell[] = [];
  readonly #deliveries = new Map<string, Delivery>();
  readonly #pushes = new Map<string, Cell[]>();

  /** `ownId`: the client id of this page. */
  constructor(ownId: string) {
    this.#ownId = ownId;
  }

  who(entryId: string | undefined, text: string): Who {
    if (entryId !== undefined) return this.#byEntry.get(entryId) ?? unknownWho;
    const prompt = [...this.#prompts.values()].find((each) => each.text === text.slice(0, knownChars));
    if (prompt === undefined) return unknownWho;
    this.#prompts.delete(prompt.promptId);
    return whoOf(prompt.by, this.#ownId);
  }

  delivery(deliveryId: string): Delivery | undefined {
    return this.#deliveries.get(deliveryId);
  }

  added(row: Cell): void {
    const item = row.item.value;
    if (item.kind === "user" && item.entryId === undefined && item.who.kind === "unknown") this.#waiting.push(row);
    if (item.kind !== "push" || item.deliveryId === undefined) return;
    this.#pushes.set(item.deliveryId, [...(this.#pushes.get(item.deliveryId) ?? []), row]);
  }

  prompt(prompt: Prompt): void {
    const { entryId, promptId, by, text, state, createdAt } = prompt;
    if (entryId !== undefined) this.#byEntry.set(entryId, whoOf(by, this.#ownId));
    if (by === undefined || state === "lost" || state === "withdrawn" || state === "refused") return;
    const row = this.#waiting.find(({ item }) => {
      const { value } = item;
      // An earlier message can have the same words.
      const isLater = (value.at ?? 0) >= createdAt;
      return isLater && value.kind === "user" && value.text.text.value.slice(0, knownChars) === text;
    });
    if (row !== undefined) {
      this.#waiting = this.#waiting.filter((other) => other !== row);
      if (row.item.value.kind === "user") row.item.value = { ...row.item.value, who: whoOf(by, this.#ownId) };
      this.#prompts.delete(promptId);
      return;
    }
    // Its message was told before: only its state has changed.
    if (state === "inserted" || state === "handled") this.#prompts.delete(promptId);
    else if (this.#prompts.set(promptId, prompt).size > maxPrompts) {
      const [oldest] = this.#prompts.keys();
      if (oldest !== undefined) this.#prompts.delete(oldest);
    }
  }

  /** Prompts of the past: those that have an entry. */
  past(prompts: readonly Prompt[]): void {
    for (const { entryId, by } of prompts)
      if (entryId !== undefined) this.#byEntry.set(entryId, whoOf(by, this.#ownId));
  }

  updated(delivery: Delivery): void {
    this.#deliveries.set(delivery.deliveryId, delivery);
    for (const { item } of this.#pushes.get(delivery.deliveryId) ?? []) {
      if (item.value.kind === "push") item.value = { ...item.value, ...pushState(delivery) };
    }
  }
}
