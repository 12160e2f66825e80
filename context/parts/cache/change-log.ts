import { isRecord } from "../../../protocol/objects.ts";

/** Changes remembered until a request shows them. */
const maxRemembered = 10_000;
/** Remembered passing texts; keep-warm requests repeat the last one. */
const maxPassing = 8;

/** Which part changed which entries, from the proposal to the first request with the change; and passing texts. */
export class ChangeLog {
  readonly #parts = new Map<string, string>();
  readonly #passing = new Set<string>();

  add(part: string, entryIds: readonly string[]): void {
    for (const id of entryIds) this.#parts.set(id, part);
    while (this.#parts.size > maxRemembered) this.#parts.delete(this.#parts.keys().next().value as string);
  }

  /** The part with a pending change of this entry. */
  partOf(entryId: string): string | undefined {
    return this.#parts.get(entryId);
  }

  /** The entries with pending changes. */
  entries(): readonly string[] {
    return [...this.#parts.keys()];
  }

  /** Text at the end of one request: it gets no cache mark, and its removal is not a loss. */
  passing(text: string): void {
    this.#passing.add(text);
    if (this.#passing.size > maxPassing) this.#passing.delete(this.#passing.values().next().value as string);
  }

  /** Whether a message of a payload contains only passing text. */
  isPassingMessage(message: unknown): boolean {
    if (this.#passing.size === 0 || !isRecord(message) || message["role"] !== "user") return false;
    const { content } = message;
    if (typeof content === "string") return this.#passing.has(content);
    if (!Array.isArray(content) || content.length === 0) return false;
    return content.every((block) => isRecord(block) && this.#passing.has(String(block["text"])));
  }

  /** A request has shown all pending changes. */
  shown(): void {
    this.#parts.clear();
  }
}
