import { WireError } from "../../protocol/errors.ts";
import type { Database } from "./database.ts";

/** Counts writes that are not on disk yet, by key, because readers of the database do not find them. */
export class PendingWrites {
  readonly #counts = new Map<string, number>();

  has(key: string): boolean {
    return this.#counts.has(key);
  }

  /**
   * Writes what is queued for the key, so that readers find it. Throws `store_failed` if the disk does not respond:
   * readers would get outdated rows.
   */
  settle(database: Database, key: string): void {
    if (!this.has(key) || database.flush()) return;
    const why = "The disk does not respond: the newest writes cannot be read yet.";
    throw new WireError("store_failed", why, { retryAfterMs: 1_000 });
  }

  /** Counts a write until it has settled, and returns it. */
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
