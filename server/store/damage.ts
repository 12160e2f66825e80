import { existsSync, statSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { failureKind } from "./connection.ts";
import { schemaVersion } from "./migrations.ts";
import { type Row, rowsSql, tables } from "./rows.ts";

/** A description of the damage. */
export interface Damage {
  readonly why: string;
  /** Whether its newest transactions may be missing, so that delivery states may be out of date. */
  readonly isStale: boolean;
}

/**
 * Checks a store without changing it: SQLite's own check, each row against its checksum, and the newest commit
 * against the mark. Takes about 0.3 s for 100 MB. Throws if the store cannot be read for another reason than damage
 * (permissions, a locked or failing disk).
 */
export function findDamage(path: string, noted: number | undefined): Damage | undefined {
  const isThere = existsSync(path) && statSync(path).size > 0;
  if (!isThere) {
    return noted === undefined ? undefined : { why: "The database is missing or empty.", isStale: true };
  }
  let database: DatabaseSync | undefined;
  try {
    // A writable connection would checkpoint the WAL when it is closed.
    database = new DatabaseSync(path, { readOnly: true });
    return check(database, noted);
  } catch (error) {
    if (!isDamage(error)) throw error;
    return { why: `SQLite cannot read the database: ${(error as Error).message}.`, isStale: true };
  } finally {
    database?.close();
  }
}

function check(database: DatabaseSync, noted: number | undefined): Damage | undefined {
  const shape = Number(database.prepare("PRAGMA user_version").get()?.["user_version"]);
  // A newer version's store is not damaged; opening it reports the version.
  if (shape > schemaVersion) return undefined;
  if (shape === 0) {
    return noted === undefined ? undefined : { why: "The database is empty.", isStale: true };
  }
  const missing = noted === undefined || shape < firstVersionWithCommits ? 0 : noted - newestCommit(database);
  const isStale = missing > 0;
  const found = database.prepare("PRAGMA integrity_check(1)").get()?.["integrity_check"];
  if (found !== "ok") return { why: `SQLite's check found: ${String(found).replaceAll("\n", " ")}.`, isStale };
  for (const table of tables) {
    for (const row of database.prepare(rowsSql(database, table, "")).iterate() as Iterable<Row>) {
      if (!table.isSound(row)) return { why: `A row of the table ${table.name} is damaged.`, isStale };
    }
  }
  if (!isStale) return undefined;
  return { why: `The newest ${missing} transactions are missing: the end of the WAL is missing or torn.`, isStale };
}

/** The first shape with the table `commits`. */
const firstVersionWithCommits = 3;

function newestCommit(database: DatabaseSync): number {
  return Number(database.prepare("SELECT newest FROM commits").get()?.["newest"] ?? 0);
}

const shortRead = 522;

function isDamage(error: unknown): boolean {
  if (!(error instanceof Error) || !("errcode" in error)) return false;
  const code = Number(error.errcode);
  const primary = code & 0xff;
  // SQLITE_ERROR: a required table or column is missing. IOERR and CANTOPEN are errors of the system, and may pass.
  return code === shortRead || primary === 1 || (failureKind(error) === "broken" && primary !== 10 && primary !== 14);
}
