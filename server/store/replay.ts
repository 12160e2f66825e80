import type { DatabaseSync, StatementSync } from "node:sqlite";
import { type ChangeRecord, logFiles, recordsIn } from "./change-log.ts";
import { failureKind } from "./connection.ts";
import { migrate } from "./migrations.ts";

/** What a copy and a log restored. */
export interface Replayed {
  /** The newest known commit. */
  readonly newest: number;
  /** Number of transactions up to it that were not restored. */
  readonly missing: number;
  /** Damaged lines, of the copy also its missing end. */
  readonly damagedLines: number;
}

/**
 * Fills an empty database from the copy and the log of changes next to `path`. `noted` is the number of the newest
 * commit according to the mark. Throws if a file cannot be read, a `NewerStoreError`, or an error of SQLite for the
 * target's disk.
 */
export function replay(database: DatabaseSync, path: string, noted: number): Replayed {
  const { copy, former, current } = logFiles(path);
  const target = new Target(database);
  let [newest, missing, damagedLines] = [0, 0, 0];
  let isEnded = true;
  for (const record of recordsIn(copy)) {
    isEnded = record?.changes.length === 0;
    if (record === undefined || !target.apply(record)) damagedLines += 1;
    newest = record?.number ?? newest;
  }
  if (!isEnded) damagedLines += 1;
  let damagedBefore = 0;
  for (const file of [former, current]) {
    for (const record of recordsIn(file)) {
      if (record === undefined) damagedBefore += 1;
      else {
        // The copy has it, with all before it, or it was written again after the end of the writing thread.
        if (record.number > newest) {
          missing += record.number - newest - (target.apply(record) ? 1 : 0);
          newest = record.number;
          damagedLines += damagedBefore;
        }
        damagedBefore = 0;
      }
    }
  }
  damagedLines += damagedBefore;
  target.end();
  missing += Math.max(0, noted - newest);
  return { newest: Math.max(newest, noted), missing, damagedLines };
}

/** Applies records in one transaction for each schema version. */
class Target {
  readonly #database: DatabaseSync;
  readonly #compiled = new Map<string, StatementSync>();
  #shape = 0;

  constructor(database: DatabaseSync) {
    this.#database = database;
    database.exec("BEGIN IMMEDIATE");
  }

  /** All of it or nothing; false if it does not fit to the database, because earlier records are missing. */
  apply({ shape, changes }: ChangeRecord): boolean {
    if (shape > this.#shape) {
      this.#database.exec("COMMIT");
      migrate(this.#database, shape);
      this.#database.exec("BEGIN IMMEDIATE");
      this.#shape = shape;
    }
    this.#database.exec("SAVEPOINT record");
    try {
      for (const [sql, ...lists] of changes) for (const parameters of lists) this.#statement(sql).run(...parameters);
      return true;
    } catch (error) {
      if (failureKind(error) !== "statement") throw error;
      this.#database.exec("ROLLBACK TO record");
      return false;
    } finally {
      if (this.#database.isTransaction) this.#database.exec("RELEASE record");
    }
  }

  end(): void {
    this.#database.exec("COMMIT");
  }

  #statement(sql: string): StatementSync {
    const statement = this.#compiled.get(sql) ?? this.#database.prepare(sql);
    this.#compiled.set(sql, statement);
    return statement;
  }
}
