import type { Database } from "./database.ts";

export interface StoredResult {
  readonly paramsHash: string;
  /** JSON. */
  readonly result: string;
}

const keepMs = 24 * 60 * 60 * 1_000;

/** Results of calls with an idempotency key, kept for 24 hours, across restarts. */
export class IdempotencyStore {
  readonly #database: Database;
  readonly #put;
  readonly #get;
  readonly #expire;

  constructor(database: Database) {
    this.#database = database;
    this.#put = database.prepare(
      "INSERT OR REPLACE INTO idempotency (method, key, params_hash, result, at) VALUES (?, ?, ?, ?, ?)",
    );
    this.#get = database.prepare(
      "SELECT params_hash AS paramsHash, result FROM idempotency WHERE method = ? AND key = ? AND at > ?",
    );
    this.#expire = database.prepare("DELETE FROM idempotency WHERE at <= ?");
  }

  put(method: string, key: string, stored: StoredResult): Promise<void> {
    return this.#database.keep(
      `result ${method} ${key}`,
      this.#put,
      method,
      key,
      stored.paramsHash,
      stored.result,
      Date.now(),
    );
  }

  get(method: string, key: string): StoredResult | undefined {
    return this.#get.get(method, key, Date.now() - keepMs) as StoredResult | undefined;
  }

  /** Forgets what is older than that at `now`, in Unix milliseconds. */
  expire(now: number): Promise<void> {
    return this.#database.write(this.#expire, now - keepMs);
  }
}
