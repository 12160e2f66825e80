import { closeSync, existsSync, fsyncSync, openSync, readdirSync, renameSync, rmSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { knownShape, requireKnownShape } from "./migrations.ts";

/** How many copies of older stores are kept: of each shape the newest, and of these the newest. */
const maxBackups = 2;

/** A copy of a store as it was before it was brought to another shape. */
export interface StoreBackup {
  readonly path: string;
  /** Of the copy: the number of migrations that it has seen. */
  readonly shape: number;
}

/**
 * Copies a store that an older version has written, whole and synced, before anything of it is changed. Undefined where
 * there is nothing to be copied: no store, or one of this version's shape. Throws a {@link NewerStoreError} where a newer
 * version has written it, which is left as it is to the byte, and what the system says where no copy can be made.
 */
export function backUpOlder(path: string, now: number): StoreBackup | undefined {
  if (!existsSync(path) || statSync(path).size === 0) return undefined;
  // A connection that may write would move the WAL into the database when it is closed.
  const database = new DatabaseSync(path, { readOnly: true });
  try {
    const shape = requireKnownShape(Number(database.prepare("PRAGMA user_version").get()?.["user_version"]));
    if (shape === 0 || shape === knownShape) return undefined;
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

/** One that a daemon was killed over is begun anew. */
function copyTo(target: string, database: DatabaseSync): void {
  try {
    rmSync(target, { force: true });
    closeSync(openSync(target, "wx", 0o600));
    database.prepare("VACUUM INTO ?").run(target);
    sync(target);
  } catch (error) {
    // On a full disk it would be in the way; what is no file stays.
    if (statSync(target, { throwIfNoEntry: false })?.isFile() === true) rmSync(target, { force: true });
    const why = error instanceof Error ? error.message : String(error);
    throw new Error(`It is of an older version, and cannot be copied before it is changed: ${why}`, { cause: error });
  }
}

/** A daemon that fails behind the first of several migrations, again and again, takes nothing from the first copy. */
function forgetOld(path: string, newest: string, shape: number): void {
  const others = backupsOf(path).filter((backup) => backup !== newest);
  const same = others.filter((backup) => backup.startsWith(`${path}.shape-${shape}-`));
  const rest = others.filter((backup) => !same.includes(backup)).slice(maxBackups - 1);
  for (const backup of [...same, ...rest]) rmSync(backup);
}

/** The newest first. */
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
