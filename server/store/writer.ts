import type { DatabaseSync, StatementSync } from "node:sqlite";
import type { CommitMark } from "./commit-mark.ts";
import { type Connect, type FailureKind, failureKind, type Parameters } from "./connection.ts";

// The writing thread loads this file: it imports no more than it needs.

/** A statement with what is bound to it. */
export interface Change {
  readonly sql: string;
  readonly parameters: Parameters;
}

export type WriterRequest =
  /** All of it in one transaction, or nothing. */
  | { readonly kind: "commit"; readonly changes: readonly Change[] }
  /** Replaces a broken connection; on a full disk, truncates the WAL. */
  | { readonly kind: "recover" }
  /** Returns at most this many free pages to the file system. */
  | { readonly kind: "shrink"; readonly pages: number };

export interface WriterFailure {
  readonly kind: FailureKind;
  readonly error: Error;
}

export interface WriterOutcome {
  /** Undefined: it is done and on disk. */
  readonly failure?: WriterFailure;
  /** The number of the newest commit, if there was one. */
  readonly commits?: number;
  /** The file with the number of the newest commit could not be written. The commit is valid. */
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
}

/** The writer of the database: a connection, and a new one after a system error. */
export class Writer {
  readonly #options: WriterOptions;
  readonly #compiled = new Map<string, StatementSync>();
  #connection: DatabaseSync;
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

  /** Never throws. */
  take(request: WriterRequest): WriterOutcome {
    try {
      if (request.kind === "commit") return this.#commit(request.changes);
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

  #commit(changes: readonly Change[]): WriterOutcome {
    if (this.#isBroken) throw Object.assign(new Error("The connection is broken."), { errcode: 10 });
    let commits: number;
    try {
      this.#statement("BEGIN IMMEDIATE").run();
      for (const { sql, parameters } of changes) this.#statement(sql).run(...parameters);
      commits = Number(this.#statement("UPDATE commits SET newest = newest + 1 RETURNING newest").get()?.["newest"]);
      this.#statement("COMMIT").run();
    } catch (error) {
      rollBack(this.#connection);
      if (failureKind(error) === "broken") this.#isBroken = true;
      throw error;
    }
    return this.#marked(commits);
  }

  #marked(commits: number): WriterOutcome {
    try {
      this.#options.mark?.write(commits);
      return { commits };
    } catch (error) {
      return { commits, markError: asError(error) };
    }
  }

  #recover(): WriterOutcome {
    if (!this.#isBroken) {
      this.#emptyWal();
      return {};
    }
    this.#replaceConnection();
    return { commits: this.commits };
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
   * The old connection stays until the new one has written and synced. So the new one overwrites the failed
   * transaction in the WAL, and no recovery reads it.
   */
  #replaceConnection(): void {
    const next = this.#options.connect(this.#options.path);
    try {
      const found = next.prepare("PRAGMA quick_check(1)").get();
      if (found?.["quick_check"] !== "ok") throw new Error(`The database is damaged: ${found?.["quick_check"]}`);
      next.exec("BEGIN IMMEDIATE; UPDATE commits SET newest = newest + 1; COMMIT;");
    } catch (error) {
      rollBack(next);
      next.close();
      throw error;
    }
    const former = this.#connection;
    this.#connection = next;
    this.#compiled.clear();
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
