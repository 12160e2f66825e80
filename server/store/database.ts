import type { DatabaseSync } from "node:sqlite";
import { WireError } from "../../protocol/errors.ts";
import { type Deferred, deferred } from "../lib/deferred.ts";
import type { CommitMark } from "./commit-mark.ts";
import { type Connect, connect, failureKind, type Parameters, Statement } from "./connection.ts";
import { migrate } from "./migrations.ts";

interface Write {
  readonly statement: Statement;
  readonly parameters: Parameters;
  readonly done: Deferred<void>;
  /** It is made again, as long as nothing newer has this key. */
  readonly key?: string;
}

export type StoreHealth =
  | { readonly state: "open" }
  /** Writes are refused, or fail, since then. Reads go on. */
  | { readonly state: "failing"; readonly since: number; readonly why: string };

export interface DatabaseOptions {
  /** Where the number of the newest commit is kept; without it a lost end of the WAL goes unnoticed. */
  readonly mark?: CommitMark;
  /** The store can be written again. */
  readonly onRecovered?: () => void;
  /** For tests. */
  readonly connect?: Connect;
}

/** How long a change that has happened waits for a transaction that is made anyway. */
const maxKeepDelayMs = 1;

/** Between two attempts to open the database again, or to write what could not be written. */
const firstRetryMs = 100;
const maxRetryMs = 10_000;

/**
 * The embedded store: SQLite in WAL mode with `synchronous=FULL`. Writes of one turn of the event loop share one
 * transaction and one sync, so that many pushes cost little more than one. A write's promise resolves when it is on
 * disk, and rejects when its transaction failed as a whole: nothing of it is then stored. Where the store itself failed,
 * and not the statement, that is the error `store_failed`.
 *
 * After an error of the system nothing more is written by the connection that met it: another one is opened, verified,
 * and takes its place. Until that succeeds writes are refused, while the old connection still reads.
 */
export class Database {
  readonly #path: string;
  readonly #onFailure: (error: unknown) => void;
  readonly #options: DatabaseOptions;
  readonly #count: Statement;
  readonly #begin: Statement;
  readonly #commit: Statement;
  #database: DatabaseSync;
  #commits: number;
  #batch: Write[] = [];
  #urgent: NodeJS.Immediate | undefined;
  #lazy: NodeJS.Timeout | undefined;
  /** What has to be made again, the newest of each key. */
  readonly #unwritten = new Map<string, Write>();
  #health: StoreHealth = { state: "open" };
  /** Whether the connection has met an error of the system. */
  #isBroken = false;
  #retry: NodeJS.Timeout | undefined;
  #retryMs = firstRetryMs;

  /** `path` is a file or `:memory:`. `onFailure` hears of every transaction that failed. */
  constructor(path: string, onFailure: (error: unknown) => void, options: DatabaseOptions = {}) {
    this.#path = path;
    this.#onFailure = onFailure;
    this.#options = options;
    this.#database = (options.connect ?? connect)(path);
    try {
      migrate(this.#database);
      this.#count = this.prepare("UPDATE commits SET newest = ?");
      this.#begin = this.prepare("BEGIN IMMEDIATE");
      this.#commit = this.prepare("COMMIT");
      this.#commits = commitsOf(this.#database);
    } catch (error) {
      this.#database.close();
      throw error;
    }
  }

  get health(): StoreHealth {
    return this.#health;
  }

  /** How many changes wait to be written again. */
  get unwritten(): number {
    return this.#unwritten.size;
  }

  /** The number of the newest commit. */
  get commits(): number {
    return this.#commits;
  }

  prepare(sql: string): Statement {
    return new Statement(sql, () => this.#database);
  }

  /** Queues a statement for the next transaction. If that fails it is forgotten. */
  write(statement: Statement, ...parameters: Parameters): Promise<void> {
    this.#urgent ??= setImmediate(() => this.flush());
    return this.#queue({ statement, parameters, done: deferred() });
  }

  /**
   * Queues a statement that has happened in any case, and is only noted. If it fails, the promise rejects, and the newest
   * statement of each key is made again when the store is back. Nobody is answered by it, so it waits for a moment for
   * the next transaction to take it along.
   */
  keep(key: string, statement: Statement, ...parameters: Parameters): Promise<void> {
    this.#lazy ??= setTimeout(() => this.flush(), maxKeepDelayMs);
    return this.#queue({ statement, parameters, done: deferred(), key });
  }

  /** Commits what is queued, now. Never throws. */
  flush(): void {
    clearImmediate(this.#urgent);
    clearTimeout(this.#lazy);
    this.#urgent = undefined;
    this.#lazy = undefined;
    const batch = this.#batch;
    if (batch.length === 0) return;
    this.#batch = [];
    if (this.#isBroken) {
      this.#refuse(batch, this.#failure());
      return;
    }
    try {
      this.#transact(batch);
    } catch (error) {
      this.#failed(batch, error);
      return;
    }
    for (const { done } of batch) done.resolve();
    if (this.#health.state === "failing") this.#rewrite();
  }

  /** Gives at most so many free pages back to the file system. */
  shrink(pages: number): void {
    if (!this.#isBroken) this.#database.exec(`PRAGMA incremental_vacuum(${pages})`);
  }

  close(): void {
    this.flush();
    if (this.#unwritten.size > 0) this.#recover();
    clearTimeout(this.#retry);
    this.#retry = undefined;
    this.#database.close();
  }

  #queue(write: Write): Promise<void> {
    // Whoever does not look at the outcome shall not end the daemon.
    write.done.promise.catch(() => {});
    this.#batch.push(write);
    return write.done.promise;
  }

  #transact(batch: readonly Write[]): void {
    const next = this.#commits + 1;
    try {
      this.#begin.run();
      for (const { statement, parameters } of batch) statement.run(...parameters);
      this.#count.run(next);
      this.#commit.run();
    } catch (error) {
      rollBack(this.#database);
      throw error;
    }
    this.#commits = next;
    for (const { key } of batch) if (key !== undefined) this.#unwritten.delete(key);
    try {
      this.#options.mark?.write(next);
    } catch (error) {
      this.#onFailure(error);
    }
  }

  #failed(batch: readonly Write[], error: unknown): void {
    const kind = failureKind(error);
    this.#onFailure(error);
    if (kind === "statement") {
      // What is wrong with one of them must not be tried for ever.
      for (const { done } of batch) done.reject(error);
      return;
    }
    this.#noteFailing(error);
    this.#refuse(batch, this.#failure(error));
    if (kind === "broken") {
      this.#isBroken = true;
      this.#recover();
    }
    this.#scheduleRetry();
  }

  #noteFailing(error: unknown): void {
    const why = error instanceof Error ? error.message : String(error);
    const since = this.#health.state === "failing" ? this.#health.since : Date.now();
    this.#health = { state: "failing", since, why };
  }

  #refuse(batch: readonly Write[], error: WireError): void {
    for (const write of batch) {
      if (write.key !== undefined) this.#unwritten.set(write.key, write);
      write.done.reject(error);
    }
  }

  #failure(cause?: unknown): WireError {
    const why = this.#health.state === "failing" ? this.#health.why : "";
    return new WireError(
      "store_failed",
      `The store could not be written (${why}); nothing was accepted.`,
      { retryAfterMs: Math.max(1_000, this.#retryMs) },
      { cause },
    );
  }

  /** Opens the database anew where the connection is broken, and writes what could not be written. */
  #recover(): void {
    if (this.#isBroken) {
      try {
        this.#replaceConnection();
      } catch (error) {
        this.#onFailure(error);
        this.#noteFailing(error);
        return;
      }
    } else this.#emptyWal();
    this.#rewrite();
  }

  /** Where there is no room, what the WAL takes may be all that is wanted. */
  #emptyWal(): void {
    try {
      this.#database.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    } catch {
      // The write behind it says what is wrong.
    }
  }

  /**
   * The old connection stays until the new one has written and synced. So what the failed transaction left in the WAL is
   * written over, and never read by a recovery.
   */
  #replaceConnection(): void {
    const next = (this.#options.connect ?? connect)(this.#path);
    try {
      const found = next.prepare("PRAGMA quick_check(1)").get();
      if (found?.["quick_check"] !== "ok") throw new Error(`The database is damaged: ${found?.["quick_check"]}`);
      next.exec(`BEGIN IMMEDIATE; UPDATE commits SET newest = newest + 1; COMMIT;`);
      this.#commits = commitsOf(next);
    } catch (error) {
      rollBack(next);
      next.close();
      throw error;
    }
    const former = this.#database;
    this.#database = next;
    this.#isBroken = false;
    try {
      former.close();
    } catch (error) {
      this.#onFailure(error);
    }
  }

  #rewrite(): void {
    const again = [...this.#unwritten.values()];
    try {
      if (again.length > 0) this.#transact(again);
    } catch (error) {
      const kind = failureKind(error);
      this.#onFailure(error);
      // One that SQLite does not take would keep all the others away.
      if (kind === "statement") this.#unwritten.clear();
      if (kind === "broken") this.#isBroken = true;
      this.#noteFailing(error);
      return;
    }
    clearTimeout(this.#retry);
    this.#retry = undefined;
    this.#retryMs = firstRetryMs;
    this.#health = { state: "open" };
    this.#options.onRecovered?.();
  }

  #scheduleRetry(): void {
    if (this.#retry !== undefined || this.#health.state === "open") return;
    this.#retry = setTimeout(() => {
      this.#retry = undefined;
      this.#retryMs = Math.min(this.#retryMs * 2, maxRetryMs);
      this.#recover();
      this.#scheduleRetry();
    }, this.#retryMs).unref();
  }
}

function commitsOf(database: DatabaseSync): number {
  return Number(database.prepare("SELECT newest FROM commits").get()?.["newest"] ?? 0);
}

function rollBack(database: DatabaseSync): void {
  try {
    database.exec("ROLLBACK");
  } catch {
    // SQLite has rolled back by itself (a full disk, a failed sync).
  }
}
