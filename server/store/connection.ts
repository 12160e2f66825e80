import { DatabaseSync, type StatementSync } from "node:sqlite";
import { addPacking } from "./packing.ts";

/** What is bound to a statement. */
export type Parameters = readonly (string | number | null | Uint8Array)[];

/** Opens a connection. Throws what SQLite throws. */
export type Connect = (path: string) => DatabaseSync;

/** The bound of the WAL's file once its frames are in the database: it is cut to this after a larger transaction. */
const maxIdleWalBytes = 16 * 1024 * 1024;

/**
 * WAL mode with a sync at every commit. Pages that were freed can be given back to the file system, which SQLite takes only
 * for a database that is still empty.
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

/** A statement that outlives the connection on which it was compiled. It is compiled when it is first asked. */
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

/** Why a transaction failed, as far as it decides what is done next. */
export type FailureKind =
  /** There is no room, or another process holds the database. It was taken back, and the connection is good. */
  | "unready"
  /** The system could not read, write or sync, or what was read is damaged: the connection is not to be trusted. */
  | "broken"
  /** The statement itself was wrong. */
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

/** By SQLite's result code, whose low byte is the primary one (https://sqlite.org/rescode.html). */
export function failureKind(error: unknown): FailureKind {
  const code = error instanceof Error && "errcode" in error ? Number(error.errcode) & 0xff : -1;
  return codes[code] ?? "statement";
}
