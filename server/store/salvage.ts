import { closeSync, copyFileSync, existsSync, fstatSync, ftruncateSync, openSync, rmSync, writeSync } from "node:fs";
import { DatabaseSync, type StatementSync } from "node:sqlite";
import { type Row, rowsSql, type Table, tables } from "./rows.ts";

/** The readable content of a damaged store. */
export interface Salvaged {
  readonly rows: Readonly<Record<Table["name"], readonly Row[]>>;
  readonly results: readonly Readonly<Record<string, unknown>>[];
  /** Of `closed_sessions`. */
  readonly closed: readonly Readonly<Record<string, unknown>>[];
  /** Ids of unreadable rows that an index still has. */
  readonly lostIds: Readonly<Record<Table["name"], readonly string[]>>;
}

/** How many row numbers are tried one by one if neither the table nor its index lists them. */
const maxGuesses = 10_000;

const nothing: Salvaged = {
  rows: { sessions: [], prompts: [], deliveries: [] },
  results: [],
  closed: [],
  lostIds: { sessions: [], prompts: [], deliveries: [] },
};

/**
 * Reads everything readable without changing the damaged files. If the first page, with the schema, is lost, the
 * first page of a new store replaces it in a copy at `copy`. Never throws.
 */
export function salvage(path: string, copy: string, firstPage: Buffer): Salvaged {
  return read(path, true) ?? readCopy(path, copy, firstPage) ?? nothing;
}

function readCopy(path: string, copy: string, firstPage: Buffer): Salvaged | undefined {
  try {
    for (const suffix of ["", "-wal"]) {
      if (existsSync(`${path}${suffix}`)) copyFileSync(`${path}${suffix}`, `${copy}${suffix}`);
    }
    const descriptor = openSync(copy, "r+");
    try {
      writeSync(descriptor, withoutPageCount(firstPage), 0, firstPage.length, 0);
      // A torn page at the end is cut off.
      const { size } = fstatSync(descriptor);
      ftruncateSync(descriptor, size - (size % firstPage.length));
    } finally {
      closeSync(descriptor);
    }
    return read(copy, false);
  } catch {
    return undefined;
  } finally {
    for (const suffix of ["", "-wal", "-shm"]) rmSync(`${copy}${suffix}`, { force: true });
  }
}

/** With a mismatching change counter, SQLite takes the number of pages from the file's size. */
function withoutPageCount(firstPage: Buffer): Buffer {
  const page = Buffer.from(firstPage);
  page.writeUInt32BE(0, 28);
  return page;
}

function read(path: string, readOnly: boolean): Salvaged | undefined {
  let database: DatabaseSync | undefined;
  try {
    database = new DatabaseSync(path, { readOnly });
    const open = database;
    database.prepare("SELECT count(*) FROM sqlite_schema").get();
    const rows = byName((table) => readTable(open, table).filter((row) => table.isSound(row)));
    return {
      rows,
      results: resultsOf(open),
      closed: tryEach(open, "SELECT session_id, record, record_sum, closed_at FROM closed_sessions").rows,
      lostIds: byName((table) => {
        const known = new Set(rows[table.name].map((row) => row[table.id]));
        return idsByIndex(open, table).filter((id) => !known.has(id));
      }),
    };
  } catch {
    return undefined;
  } finally {
    database?.close();
  }
}

/** The results of calls with a key, in any schema version. */
function resultsOf(database: DatabaseSync): Row[] {
  const columns = "method, key, params_hash, result, at";
  const { rows, isWhole } = tryEach(database, `SELECT ${columns}, subject FROM idempotency`);
  return isWhole || rows.length > 0 ? rows : tryEach(database, `SELECT ${columns} FROM idempotency`).rows;
}

function byName<T>(of: (table: Table) => T): Record<Table["name"], T> {
  return Object.fromEntries(tables.map((table) => [table.name, of(table)])) as Record<Table["name"], T>;
}

/** Reads forwards up to the unreadable part, backwards down to it, and the rows in between one by one. */
function readTable(database: DatabaseSync, table: Table): Row[] {
  try {
    const front = tryEach(database, rowsSql(database, table, "ORDER BY rowid"));
    if (front.isWhole) return front.rows;
    const back = tryEach(database, rowsSql(database, table, "ORDER BY rowid DESC"));
    const rows = new Map([...front.rows, ...back.rows].map((row) => [row.row, row]));
    const single = database.prepare(rowsSql(database, table, "WHERE rowid = ?"));
    for (const number of numbersToTry(database, table, front.rows.at(-1)?.row ?? 0, back.rows.at(-1)?.row)) {
      const row = rows.has(number) ? undefined : tryOne(single, number);
      if (row !== undefined) rows.set(number, row);
    }
    return [...rows.values()];
  } catch {
    return [];
  }
}

/** Row numbers from the primary key's index; if it is unreadable, all numbers between the two ends. */
function numbersToTry(database: DatabaseSync, { name, id }: Table, from: number, to: number | undefined): number[] {
  const index = tryEach(database, `SELECT rowid AS row, ${id} FROM ${name} INDEXED BY sqlite_autoindex_${name}_1`);
  if (index.isWhole) return index.rows.map(({ row }) => row);
  const last = Math.min(to ?? Number.POSITIVE_INFINITY, from + maxGuesses);
  return Array.from({ length: Math.max(0, last - from) }, (_, i) => from + 1 + i);
}

function tryOne(statement: StatementSync, number: number): Row | undefined {
  try {
    return statement.get(number) as Row | undefined;
  } catch {
    return undefined;
  }
}

function tryEach(database: DatabaseSync, sql: string): { rows: Row[]; isWhole: boolean } {
  const rows: Row[] = [];
  try {
    for (const row of database.prepare(sql).iterate()) rows.push(row as Row);
    return { rows, isWhole: true };
  } catch {
    return { rows, isWhole: false };
  }
}

/** The ids from the primary key's own index. */
function idsByIndex(database: DatabaseSync, { name, id }: Table): string[] {
  const sql = `SELECT ${id} AS id FROM ${name} INDEXED BY sqlite_autoindex_${name}_1`;
  return tryEach(database, sql).rows.flatMap((row) => (typeof row["id"] === "string" ? [row["id"]] : []));
}
