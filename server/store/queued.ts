import { WireError } from "../../protocol/errors.ts";
import type { Database } from "./database.ts";

/** What is on its way to the disk, by key: readers of the database do not find it yet. */
export class Queued {
  readonly #counts = new Map<string, number>();

  has(key: string): boolean {
    return this.#counts.has(key);
  }

  /** Has what is on its way found by readers. Throws `store_failed` where the disk does not answer: they would be misled. */
  settle(database: Database, key: string): void {
    if (!this.has(key) || database.flush()) return;
    const why = "The disk does not answer: what was written last cannot be read yet.";
    throw new WireError("store_failed", why, { retryAfterMs: 1_000 });
  }

  /** Counts a write until it has settled. Gives it back. */
  until(written: Promise<void>, key: string): Promise<void> {
    this.#counts.set(key, (this.#counts.get(key) ?? 0) + 1);
    const settled = (): void => {
      const left = (this.#counts.get(key) ?? 0) - 1;
      if (left > 0) this.#counts.set(key, left);
      else this.#counts.delete(key);
    };
    written.then(settled, settled);
    return written;
  }
}
