import type { DatabaseSync, StatementSync } from "node:sqlite";
import type { LogAppender } from "./change-log.ts";
import type { CommitMark } from "./commit-mark.ts";
import { type Connect, type FailureKind, failureKind, type Parameters } from "./connection.ts";

// The writing thread loads this file: it imports no more than it needs.

/** A statement with what is bound to it. */
export interface Change {
  readonly sql: string;
  readonly parameters: Parameters;
}

export type WriterRequest =
  /** All of it in one transaction, or nothing. A power failure may undo what is not synced. */
  | { readonly kind: "commit"; readonly changes: readonly Change[]; readonly isSynced: boolean }
  /** Replaces a broken connection; on a full disk, truncates the WAL. */
  | { readonly kind: "recover" }
  /** Returns at most this many free pages to the file system. */
  | { readonly kind: "shrink"; readonly pages: number };

export interface WriterFailure {
  readonly kind: FailureKind;
  readonly error: Error;
}

export interface WriterOutcome {
  /** Undefined: it is done, and on disk in the requested way. */
  readonly failure?: WriterFailure;
  /** The number of the newest commit, if there was one. */
  readonly commits?: number;
  /** The log, or the file with the number of the newest commit, could not be written. The commit is valid. */
  readonly markError?: Error;
}

/** Handles one request at a time. The outcome comes synchronously or later, but always. */
export interface WriterPort {
  request(request: WriterRequest, onOutcome: (outcome: WriterOutcome) => void): void;
}

export interface WriterOptions {
  readonly path: string;
  readonly connection: DatabaseSync;
  readonly connect: Connect;
  readonly mark?: CommitMark | undefined;
  readonly log?: LogAppender | undefined;
}

/** The writer of the database: a connection, and a new one after a system error. */
export class Writer {
  readonly #options: WriterOptions;
  readonly #compiled = new Map<string, StatementSync>();
  #connection: DatabaseSync;
  /** Whether the connection syncs each commit, as a new one does. */
  #syncs = true;
  /** Whether the connection met a system error: it writes nothing more. */
  #isBroken = false;

  constructor(options: WriterOptions) {
    this.#options = options;
    this.#connection = options.connection;
  }

  get connection(): DatabaseSync {
    return this.#connection;
  }

  /** The number of the newest commit. Throws errors of SQLite. */
  get commits(): number {
    return Number(this.#connection.prepare("SELECT newest FROM commits").get()?.["newest"] ?? 0);
  }

  /** The connection writes nothing more: another connection met a system error at the same file. */
  markBroken(): void {
    this.#isBroken = true;
  }

  /** Whether its commits also make the checkpoints of the WAL, as SQLite does by default. */
  set makesCheckpoints(makes: boolean) {
    // A thread can report that it is ready after the store was closed.
    if (this.#isBroken || !this.#connection.isOpen) return;
    this.#connection.exec(`PRAGMA wal_autocheckpoint = ${makes ? 1_000 : 0}`);
  }

  /** Never throws. */
  take(request: WriterRequest): WriterOutcome {
    try {
      if (request.kind === "commit") return this.#commit(request.changes, request.isSynced);
      if (request.kind === "recover") return this.#recover();
      if (!this.#isBroken) this.#connection.exec(`PRAGMA incremental_vacuum(${request.pages})`);
      return {};
    } catch (error) {
      return { failure: { kind: failureKind(error), error: asError(error) } };
    }
  }

  close(): void {
    this.#connection.close();
  }

  #commit(changes: readonly Change[], isSynced: boolean): WriterOutcome {
    if (this.#isBroken) throw Object.assign(new Error("The connection is broken."), { errcode: 10 });
    let commits: number;
    try {
      this.#sync(isSynced);
      this.#statement("BEGIN IMMEDIATE").run();
      for (const { sql, parameters } of changes) this.#statement(sql).run(...parameters);
      commits = Number(this.#statement("UPDATE commits SET newest = newest + 1 RETURNING newest").get()?.["newest"]);
      this.#statement("COMMIT").run();
    } catch (error) {
      rollBack(this.#connection);
      if (failureKind(error) === "broken") this.#isBroken = true;
      throw error;
    }
    return this.marked(commits, changes, isSynced);
  }

  /** A commit in NORMAL mode is not synced; the next one in FULL mode also syncs all commits before it. */
  #sync(isSynced: boolean): void {
    if (this.#syncs === isSynced) return;
    // Not a kept statement: SQLite runs this pragma when it compiles it.
    this.#connection.exec(`PRAGMA synchronous = ${isSynced ? "FULL" : "NORMAL"}`);
    this.#syncs = isSynced;
  }

  /** Logs a commit, and notes its number if it is synced. Never throws. */
  marked(commits: number, changes: readonly Change[], isSynced: boolean): WriterOutcome {
    const { log, mark } = this.#options;
    let failure: unknown;
    for (const write of [() => log?.append(commits, changes), () => isSynced && mark?.write(commits)]) {
      try {
        write();
      } catch (error) {
        failure ??= error;
      }
    }
    return failure === undefined ? { commits } : { commits, markError: asError(failure) };
  }

  #recover(): WriterOutcome {
    if (!this.#isBroken) {
      this.#emptyWal();
      return {};
    }
    this.#replaceConnection();
    return this.marked(this.commits, [], true);
  }

  /** On a full disk, truncating the WAL may free enough. */
  #emptyWal(): void {
    try {
      this.#connection.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    } catch {
      // The next write reports the error.
    }
  }

  /**
   * The old connection stays until the new one has written and synced. A failed sync may have lost unsynced frames of
   * earlier commits, after which a recovery reads no later frame: so their pages are moved to the database, and the
   * WAL begins again, without the failed transaction.
   */
  #replaceConnection(): void {
    const next = this.#options.connect(this.#options.path);
    try {
      const found = next.prepare("PRAGMA quick_check(1)").get();
      if (found?.["quick_check"] !== "ok") throw new Error(`The database is damaged: ${found?.["quick_check"]}`);
      const moved = next.prepare("PRAGMA wal_checkpoint(TRUNCATE)").get();
      if (moved?.["busy"] !== 0) throw Object.assign(new Error("The WAL is in use."), { errcode: 5 });
      next.exec("BEGIN IMMEDIATE; UPDATE commits SET newest = newest + 1; COMMIT;");
    } catch (error) {
      rollBack(next);
      next.close();
      throw error;
    }
    const former = this.#connection;
    this.#connection = next;
    this.#compiled.clear();
    this.#syncs = true;
    this.#isBroken = false;
    try {
      former.close();
    } catch {
      // The new connection has the same statements.
    }
  }

  #statement(sql: string): StatementSync {
    let statement = this.#compiled.get(sql);
    if (statement === undefined) {
      statement = this.#connection.prepare(sql);
      this.#compiled.set(sql, statement);
    }
    return statement;
  }
}

function rollBack(connection: DatabaseSync): void {
  try {
    connection.exec("ROLLBACK");
  } catch {
    // SQLite has rolled back by itself (a full disk, a failed sync).
  }
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}
