import type { Database } from "./database.ts";
import { steadyNow } from "./retention-clock.ts";

/** A call with an idempotency key. */
export interface StoredCall {
  readonly paramsHash: string;
  /** The id of its effect, if it has one. */
  readonly subject: string;
  /** JSON; undefined while the call is running. */
  readonly result?: string;
}

const keepMs = 24 * 60 * 60 * 1_000;

/**
 * Calls with an idempotency key, kept for 24 hours, across restarts. A key is stored before the call's effect, the
 * result after it.
 */
export class IdempotencyStore {
  readonly #database: Database;
  readonly #now: () => number;
  readonly #put;
  readonly #get;
  readonly #delete;
  readonly #expire;

  constructor(database: Database, now = steadyNow) {
    this.#database = database;
    this.#now = now;
    this.#put = database.prepare(
      "INSERT OR REPLACE INTO idempotency (method, key, params_hash, subject, result, at) VALUES (?, ?, ?, ?, ?, ?)",
    );
    this.#get = database.prepare(
      "SELECT params_hash AS paramsHash, subject, result FROM idempotency WHERE method = ? AND key = ? AND at > ?",
    );
    this.#delete = database.prepare("DELETE FROM idempotency WHERE method = ? AND key = ?");
    this.#expire = database.prepare("DELETE FROM idempotency WHERE at <= ?");
  }

  /** Resolves when the key is on disk: only then may its call have an effect. Rejects with `store_failed`. */
  begin(method: string, key: string, { paramsHash, subject }: StoredCall): Promise<void> {
    return this.#database.together(subject, this.#put, method, key, paramsHash, subject, "", this.#now());
  }

  /** Stores the result of a completed call. `isAwaited`: its answer waits for it. */
  finish(
    method: string,
    key: string,
    { paramsHash, subject, result = "" }: StoredCall,
    isAwaited: boolean,
  ): Promise<void> {
    if (isAwaited) this.#database.commitSoon();
    const values = [method, key, paramsHash, subject, result, this.#now()];
    return this.#database.keep(`result ${method} ${key}`, this.#put, ...values);
  }

  /** For a failed call without an effect: it may be repeated. */
  forget(method: string, key: string): Promise<void> {
    this.#database.commitSoon();
    return this.#database.keep(`result ${method} ${key}`, this.#delete, method, key);
  }

  get(method: string, key: string): StoredCall | undefined {
    const row = this.#get.get(method, key, this.#now() - keepMs);
    if (row === undefined) return undefined;
    const { paramsHash, subject, result } = row;
    const call = { paramsHash: String(paramsHash), subject: String(subject ?? "") };
    return result === "" ? call : { ...call, result: String(result) };
  }

  /** Deletes keys that are older than 24 hours at `now`, in Unix milliseconds. */
  expire(now: number): Promise<void> {
    return this.#database.write(this.#expire, now - keepMs);
  }
}
