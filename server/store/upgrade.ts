import { closeSync, existsSync, fsyncSync, openSync, readdirSync, renameSync, rmSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { requireKnownSchema, schemaVersion } from "./migrations.ts";

/** Number of kept copies of older stores: the newest of each schema version, and of these the newest. */
const maxBackups = 2;

/** A copy of a store before its migration. */
export interface StoreBackup {
  readonly path: string;
  /** The schema version of the copy. */
  readonly shape: number;
}

/**
 * Copies a store of an older version, complete and synced, before it is migrated. Undefined if there is no store, or
 * if it has this schema version. Throws a {@link NewerStoreError} for a store of a newer version, which is not
 * changed, and the system's error if the copy fails.
 */
export function backUpOlder(path: string, now: number): StoreBackup | undefined {
  if (!existsSync(path) || statSync(path).size === 0) return undefined;
  // A writable connection would checkpoint the WAL when it is closed.
  const database = new DatabaseSync(path, { readOnly: true });
  try {
    const shape = requireKnownSchema(Number(database.prepare("PRAGMA user_version").get()?.["user_version"]));
    if (shape === 0 || shape === schemaVersion) return undefined;
    const target = `${path}.shape-${shape}-${new Date(now).toISOString().replace(/[-:.]/g, "")}`;
    copyTo(`${path}.copying`, database);
    renameSync(`${path}.copying`, target);
    sync(dirname(path));
    forgetOld(path, target, shape);
    return { path: target, shape };
  } finally {
    database.close();
  }
}

/** An incomplete copy of a killed daemon is replaced. */
function copyTo(target: string, database: DatabaseSync): void {
  try {
    rmSync(target, { force: true });
    closeSync(openSync(target, "wx", 0o600));
    database.prepare("VACUUM INTO ?").run(target);
    sync(target);
  } catch (error) {
    // It would fill a full disk. Only regular files are removed.
    if (statSync(target, { throwIfNoEntry: false })?.isFile() === true) rmSync(target, { force: true });
    const why = error instanceof Error ? error.message : String(error);
    throw new Error(`It has an older schema version, and cannot be copied before its migration: ${why}`, {
      cause: error,
    });
  }
}

/** If a daemon fails repeatedly after the first of several migrations, the first copy is kept. */
function forgetOld(path: string, newest: string, shape: number): void {
  const others = backupsOf(path).filter((backup) => backup !== newest);
  const same = others.filter((backup) => backup.startsWith(`${path}.shape-${shape}-`));
  const rest = others.filter((backup) => !same.includes(backup)).slice(maxBackups - 1);
  for (const backup of [...same, ...rest]) rmSync(backup);
}

/** Newest first. */
function backupsOf(path: string): readonly string[] {
  const head = `${basename(path)}.shape-`;
  const timeOf = (name: string): string => name.slice(name.lastIndexOf("-") + 1);
  return readdirSync(dirname(path))
    .filter((name) => name.startsWith(head))
    .sort((a, b) => timeOf(b).localeCompare(timeOf(a)))
    .map((name) => join(dirname(path), name));
}

function sync(path: string): void {
  const descriptor = openSync(path, "r");
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
