import { DatabaseSync, type StatementSync } from "node:sqlite";
import { addPacking } from "./packing.ts";

/** A parameter of a statement. */
export type Parameters = readonly (string | number | null | Uint8Array)[];

/** Opens a connection. Throws errors of SQLite. */
export type Connect = (path: string) => DatabaseSync;

/** The WAL file is truncated to this size after a larger transaction, once its frames are in the database. */
const maxIdleWalBytes = 16 * 1024 * 1024;

/**
 * WAL mode with a sync at every commit. Incremental vacuum returns freed pages to the file system; SQLite accepts
 * that setting only for an empty database.
 */
export const connect: Connect = (path) => {
  const database = new DatabaseSync(path);
  try {
    database.exec(`PRAGMA busy_timeout = 2000; PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL;
      PRAGMA synchronous = FULL; PRAGMA journal_size_limit = ${maxIdleWalBytes};`);
    addPacking(database);
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
};

/** A statement that survives its connection. It is compiled on first use. */
export class Statement {
  readonly sql: string;
  readonly #connection: () => DatabaseSync;
  #compiledOn: DatabaseSync | undefined;
  #compiled: StatementSync | undefined;

  constructor(sql: string, connection: () => DatabaseSync) {
    this.sql = sql;
    this.#connection = connection;
  }

  get(...parameters: Parameters): Readonly<Record<string, unknown>> | undefined {
    return this.#current().get(...parameters);
  }

  all(...parameters: Parameters): readonly Readonly<Record<string, unknown>>[] {
    return this.#current().all(...parameters);
  }

  #current(): StatementSync {
    const connection = this.#connection();
    if (this.#compiled === undefined || this.#compiledOn !== connection) {
      this.#compiled = connection.prepare(this.sql);
      this.#compiledOn = connection;
    }
    return this.#compiled;
  }
}

/** Why a transaction failed, as the next step depends on it. */
export type FailureKind =
  /** The disk is full, or another process holds the database. It was rolled back, and the connection is usable. */
  | "unready"
  /** The system failed to read, write or sync, or the data are damaged: the connection must not be used any more. */
  | "broken"
  /** The statement itself was invalid. */
  | "statement";

const codes: Readonly<Record<number, FailureKind>> = {
  // SQLITE_PERM, BUSY, LOCKED, NOMEM, READONLY: nothing was written, and the next attempt may succeed.
  3: "unready",
  5: "unready",
  6: "unready",
  7: "unready",
  8: "unready",
  // SQLITE_FULL.
  13: "unready",
  // SQLITE_IOERR, CORRUPT, CANTOPEN, PROTOCOL, NOTADB.
  10: "broken",
  11: "broken",
  14: "broken",
  15: "broken",
  26: "broken",
};

/** By SQLite's primary result code, the low byte (https://sqlite.org/rescode.html). */
export function failureKind(error: unknown): FailureKind {
  const code = error instanceof Error && "errcode" in error ? Number(error.errcode) & 0xff : -1;
  return codes[code] ?? "statement";
}
