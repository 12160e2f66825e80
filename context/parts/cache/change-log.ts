import { isObject } from "../../../extension/pi-types.ts";

/** Changes that are remembered until a request has shown them. */
const maxRemembered = 10_000;
/** Passing texts: requests that keep a cache warm repeat the last one. */
const maxPassing = 8;

/** Which part has changed which entries, from the proposal to the request in which the change shows; and what passes. */
export class ChangeLog {
  readonly #parts = new Map<string, string>();
  readonly #passing = new Set<string>();

  add(part: string, entryIds: readonly string[]): void {
    for (const id of entryIds) this.#parts.set(id, part);
    while (this.#parts.size > maxRemembered) this.#parts.delete(this.#parts.keys().next().value as string);
  }

  /** Whose change of this entry is to show. */
  partOf(entryId: string): string | undefined {
    return this.#parts.get(entryId);
  }

  /** The entries of which a change is to show. */
  entries(): readonly string[] {
    return [...this.#parts.keys()];
  }

  /** Text at the end of a request that no later one has: no mark rests on it, and its going is no loss. */
  passing(text: string): void {
    this.#passing.add(text);
    if (this.#passing.size > maxPassing) this.#passing.delete(this.#passing.values().next().value as string);
  }

  /** Whether a message of a payload is nothing but such text. */
  isPassingMessage(message: unknown): boolean {
    if (this.#passing.size === 0 || !isObject(message) || message["role"] !== "user") return false;
    const { content } = message;
    if (typeof content === "string") return this.#passing.has(content);
    if (!Array.isArray(content) || content.length === 0) return false;
    return content.every((block) => isObject(block) && this.#passing.has(String(block["text"])));
  }

  /** What was proposed has shown. */
  shown(): void {
    this.#parts.clear();
  }
}
