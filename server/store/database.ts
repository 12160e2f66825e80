import { DatabaseSync, type StatementSync } from "node:sqlite";
import { type Deferred, deferred } from "../lib/deferred.ts";
import { migrate } from "./migrations.ts";

interface Write {
  readonly statement: StatementSync;
  readonly parameters: readonly (string | number | null)[];
  readonly done: Deferred<void>;
}

/**
 * The embedded store: SQLite in WAL mode with `synchronous=FULL`. Writes of one turn of the event loop share one
 * transaction and one sync, so that many pushes cost little more than one. A write's promise resolves when it is on
 * disk, and rejects when its transaction failed as a whole: nothing of it is then stored.
 */
export class Database {
  readonly #database: DatabaseSync;
  readonly #onFailure: (error: unknown) => void;
  #batch: Write[] = [];
  #scheduled: NodeJS.Immediate | undefined;

  /** `path` is a file or `:memory:`. `onFailure` hears of every transaction that failed. */
  constructor(path: string, onFailure: (error: unknown) => void) {
    this.#onFailure = onFailure;
    this.#database = new DatabaseSync(path);
    try {
      this.#database.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA busy_timeout = 2000;");
      migrate(this.#database);
    } catch (error) {
      this.#database.close();
      throw error;
    }
  }

  prepare(sql: string): StatementSync {
    return this.#database.prepare(sql);
  }

  /** Queues a statement for the next transaction. */
  write(statement: StatementSync, ...parameters: readonly (string | number | null)[]): Promise<void> {
    const done = deferred<void>();
    this.#batch.push({ statement, parameters, done });
    this.#scheduled ??= setImmediate(() => this.flush());
    return done.promise;
  }

  /** Commits what is queued, now. */
  flush(): void {
    clearImmediate(this.#scheduled);
    this.#scheduled = undefined;
    const batch = this.#batch;
    if (batch.length === 0) return;
    this.#batch = [];
    try {
      this.#database.exec("BEGIN IMMEDIATE");
      for (const { statement, parameters } of batch) statement.run(...parameters);
      this.#database.exec("COMMIT");
    } catch (error) {
      this.#rollback();
      this.#onFailure(error);
      for (const { done } of batch) done.reject(error);
      return;
    }
    for (const { done } of batch) done.resolve();
  }

  close(): void {
    this.flush();
    this.#database.close();
  }

  #rollback(): void {
    try {
      this.#database.exec("ROLLBACK");
    } catch {
      // SQLite has rolled back by itself (a full disk, a failed sync).
    }
  }
}
