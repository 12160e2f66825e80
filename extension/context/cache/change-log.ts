/** Changes that are remembered until a request has shown them. */
const maxRemembered = 10_000;

/** Which part has changed which entries, from the proposal to the request in which the change shows. */
export class ChangeLog {
  readonly #parts = new Map<string, string>();

  add(part: string, entryIds: readonly string[]): void {
    for (const id of entryIds) this.#parts.set(id, part);
    while (this.#parts.size > maxRemembered) this.#parts.delete(this.#parts.keys().next().value as string);
  }

  /** Whose change of this entry is to show. */
  partOf(entryId: string): string | undefined {
    return this.#parts.get(entryId);
  }

  /** Those of which nothing is known but that they were proposed, the oldest first. */
  parts(): readonly string[] {
    return [...new Set(this.#parts.values())];
  }

  /** What was proposed has shown. */
  shown(): void {
    this.#parts.clear();
  }
}
