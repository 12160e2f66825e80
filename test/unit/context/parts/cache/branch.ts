import type { ExtensionContext } from "@earendil-works/pi-coding-agent";

type Fields = Readonly<Record<string, unknown>>;

/** A session's tree, entry by entry, with the fields that the cache rule and the auditor read. */
export class Branch {
  readonly #entries: (Fields & { readonly id: string; readonly parentId: string | null })[] = [];
  #leaf: string | undefined;

  append(type: string, fields: Fields = {}, atMs = Date.now()): string {
    const id = `e${this.#entries.length + 1}`;
    const timestamp = new Date(atMs).toISOString();
    const entry = { type, id, parentId: this.#leaf ?? null, timestamp, ...fields };
    this.#entries.push(entry);
    this.#leaf = entry.id;
    return entry.id;
  }

  prompt(): string {
    return this.append("message", { message: { role: "user", content: "Go.", timestamp: 1 } });
  }

  answer(fields: Fields = {}, atMs = Date.now()): string {
    const usage = { input: 100, output: 1, cacheRead: 10_000, cacheWrite: 0, totalTokens: 10_101 };
    const message = { role: "assistant", provider: "p", model: "m", stopReason: "stop", usage, ...fields };
    return this.append("message", { message }, atMs);
  }

  /** An answer with a call, and its result. */
  call(): void {
    this.answer({ stopReason: "toolUse" });
    this.append("message", { message: { role: "toolResult", content: [], timestamp: 1 } });
  }

  goTo(id: string): void {
    this.#leaf = id;
  }

  /** One for all contexts, as in pi. */
  readonly session = {
    getSessionId: () => "s-1",
    getLeafEntry: () => this.#entryOf(this.#leaf),
    getLeafId: () => this.#leaf ?? null,
    getEntry: (id: string) => this.#entryOf(id),
    getEntries: () => [...this.#entries],
  };

  context(model: Fields = {}): ExtensionContext {
    const cost = { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75 };
    const whole = { provider: "p", id: "m", contextWindow: 1_000_000, cost, ...model };
    return { sessionManager: this.session, model: whole } as unknown as ExtensionContext;
  }

  #entryOf(id: string | undefined) {
    return this.#entries.find((entry) => entry.id === id);
  }
}
