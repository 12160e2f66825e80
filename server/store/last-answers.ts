import type { Database } from "./database.ts";
import { PendingWrites } from "./queued.ts";
import { checksumOf, isSound } from "./sums.ts";

/** The last answers of each session's pi, as one JSON text per session. */
export class LastAnswersStore {
  readonly #database: Database;
  readonly #queued = new PendingWrites();
  readonly #put;
  readonly #get;
  readonly #delete;

  constructor(database: Database) {
    this.#database = database;
    this.#put = database.prepare(
      "INSERT OR REPLACE INTO last_answers (session_id, record, record_sum) VALUES (?, ?, ?)",
    );
    this.#get = database.prepare("SELECT record, record_sum AS sum FROM last_answers WHERE session_id = ?");
    this.#delete = database.prepare("DELETE FROM last_answers WHERE session_id = ?");
  }

  /** Resolves when it is on disk, unsynced. When it rejects, the newest record is retried as soon as the store works again. */
  put(sessionId: string, record: string): Promise<void> {
    const key = keyOf(sessionId);
    return this.#queued.until(this.#database.keepUnsynced(key, this.#put, sessionId, record, checksumOf(record)), key);
  }

  /** A damaged record counts as missing. Throws `store_failed` if the disk does not respond. */
  get(sessionId: string): string | undefined {
    this.#queued.settle(this.#database, keyOf(sessionId));
    const row = this.#get.get(sessionId);
    if (row === undefined) return undefined;
    const { record, sum } = row;
    return isSound(record, sum) ? record : undefined;
  }

  delete(sessionId: string): Promise<void> {
    const key = keyOf(sessionId);
    return this.#queued.until(this.#database.clear(key, this.#delete, sessionId), key);
  }
}

function keyOf(sessionId: string): string {
  return `last answers of ${sessionId}`;
}
