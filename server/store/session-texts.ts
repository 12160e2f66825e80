import type { Database } from "./database.ts";
import { PendingWrites } from "./queued.ts";
import { checksumOf, isSound } from "./sums.ts";

/** `last_answers`: those of its pi. `summaries`: the end of its newest run. */
export type SessionTextTable = "last_answers" | "summaries";

/** One JSON text for each session. */
export class SessionTextStore {
  readonly #database: Database;
  readonly #table: SessionTextTable;
  readonly #queued = new PendingWrites();
  readonly #put;
  readonly #get;
  readonly #delete;

  constructor(database: Database, table: SessionTextTable) {
    this.#database = database;
    this.#table = table;
    this.#put = database.prepare(`INSERT OR REPLACE INTO ${table} (session_id, record, record_sum) VALUES (?, ?, ?)`);
    this.#get = database.prepare(`SELECT record, record_sum AS sum FROM ${table} WHERE session_id = ?`);
    this.#delete = database.prepare(`DELETE FROM ${table} WHERE session_id = ?`);
  }

  /** Resolves when it is on disk, unsynced. When it rejects, the newest record is retried as soon as the store works again. */
  put(sessionId: string, record: string): Promise<void> {
    const key = this.#keyOf(sessionId);
    return this.#queued.until(this.#database.keepUnsynced(key, this.#put, sessionId, record, checksumOf(record)), key);
  }

  /** A damaged record counts as missing. Throws `store_failed` if the disk does not respond. */
  get(sessionId: string): string | undefined {
    this.#queued.settle(this.#database, this.#keyOf(sessionId));
    const row = this.#get.get(sessionId);
    if (row === undefined) return undefined;
    const { record, sum } = row;
    return isSound(record, sum) ? record : undefined;
  }

  delete(sessionId: string): Promise<void> {
    const key = this.#keyOf(sessionId);
    return this.#queued.until(this.#database.clear(key, this.#delete, sessionId), key);
  }

  #keyOf(sessionId: string): string {
    return `${this.#table} of ${sessionId}`;
  }
}
