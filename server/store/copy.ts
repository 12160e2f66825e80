import { closeSync, constants, fsyncSync, openSync, renameSync, rmSync, statfsSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { lineOf, logFiles } from "./change-log.ts";
import { isSoundRow } from "./rows.ts";

const newFile = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
const maxLineChars = 256 * 1024;
/** A copy leaves this free, or a twentieth of a small disk: otherwise it would make the writes of others fail. */
const minFreeBytes = 64 * 1024 * 1024;

/** Tables that a rebuilt store does not get: events come back from pi's session files, and the feed begins again. */
const notCopied = ["commits", "events", "feed", "feed_log"];

/**
 * Writes a copy of the store next to it: statements that insert its rows, in lines like those of the log of changes.
 * It replaces the former copy when it is complete and synced. Returns the number of its newest commit. Throws if the
 * store has damaged rows, or if the copy cannot be written; the former copy then stays. Writers are not blocked.
 */
export function writeCopy(path: string): number {
  const { copy } = logFiles(path);
  const target = `${copy}.new`;
  // Only a killed daemon can have left it: one daemon holds the state directory.
  rmSync(target, { force: true });
  const database = new DatabaseSync(path, { readOnly: true });
  try {
    // All reads are of one state of the database.
    database.exec("BEGIN");
    const number = Number(database.prepare("SELECT newest FROM commits").get()?.["newest"]);
    const descriptor = openSync(target, newFile, 0o600);
    try {
      for (const json of recordsOf(database, number)) {
        const line = lineOf(json);
        requireSpace(path, line.length);
        writeAll(descriptor, line);
      }
      fsyncSync(descriptor);
    } finally {
      closeSync(descriptor);
    }
    renameSync(target, copy);
    syncDirectory(dirname(path));
    return number;
  } catch (error) {
    // It would fill a full disk.
    rmSync(target, { force: true });
    throw error;
  } finally {
    database.close();
  }
}

function* recordsOf(database: DatabaseSync, number: number): Generator<string> {
  const shape = Number(database.prepare("PRAGMA user_version").get()?.["user_version"]);
  const head = `[${number},${shape},`;
  const tables = database.prepare("SELECT name, sql FROM sqlite_schema WHERE type = 'table'").all();
  for (const { name, sql } of tables) {
    const table = String(name);
    if (notCopied.includes(table) || table.startsWith("sqlite_")) continue;
    const found = database.prepare(`PRAGMA integrity_check(${table})`).get()?.["integrity_check"];
    if (found !== "ok") throw new Error(`SQLite's check found: ${String(found)}`);
    // Some statements refer to row numbers.
    const columns = /WITHOUT ROWID/i.test(String(sql)) ? "*" : "rowid, *";
    const insert = (row: object): string => {
      const names = Object.keys(row);
      return JSON.stringify(`INSERT INTO ${table} (${names.join(", ")}) VALUES (${names.map(() => "?").join(", ")})`);
    };
    let line = "";
    for (const row of database.prepare(`SELECT ${columns} FROM ${table}`).iterate()) {
      if (!isSoundRow(table, row)) throw new Error(`A row of the table ${table} is damaged.`);
      line += `${line === "" ? `${head}[[${insert(row)}` : ""},${JSON.stringify(Object.values(row))}`;
      if (line.length < maxLineChars) continue;
      yield `${line}]]]`;
      line = "";
    }
    if (line !== "") yield `${line}]]]`;
  }
  yield `${head}[]]`;
}

function requireSpace(path: string, bytes: number): void {
  const { bavail, blocks, bsize } = statfsSync(dirname(path));
  if (bavail * bsize - bytes >= Math.min(minFreeBytes, (blocks * bsize) / 20)) return;
  throw Object.assign(new Error("Too little disk space is free."), { code: "ENOSPC" });
}

function writeAll(descriptor: number, bytes: Buffer): void {
  for (let at = 0; at < bytes.length; ) at += writeSync(descriptor, bytes, at);
}

function syncDirectory(directory: string): void {
  const descriptor = openSync(directory, "r");
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
