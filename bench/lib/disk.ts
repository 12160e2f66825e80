import { closeSync, fdatasyncSync, openSync, writeSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { compileC } from "./compile.ts";
import type { Setting } from "./figure.ts";
import { median } from "./statistics.ts";

/** What the library adds to each sync. */
export const slowSyncMs = 5;

/** An environment in which each fsync and fdatasync takes 5 ms more. Undefined without a C compiler. */
export async function slowDisk({ directory }: Setting): Promise<Readonly<Record<string, string>> | undefined> {
  const library = join(directory, "slow-sync.so");
  const delay = `-DSLOW_SYNC_US=${slowSyncMs * 1_000}`;
  const isCompiled = await compileC("slow-sync.c", ["-shared", "-fPIC", delay, "-o", library]);
  return isCompiled ? { LD_PRELOAD: library } : undefined;
}

/** The median of appending to a growing file and syncing it. */
export function syncMicroseconds(file: string, count: number): number {
  const descriptor = openSync(file, "w");
  const page = Buffer.alloc(4_096, 1);
  const samples = new Float64Array(count);
  for (let i = 0; i < count; i += 1) {
    const startedAt = performance.now();
    writeSync(descriptor, page);
    fdatasyncSync(descriptor);
    samples[i] = (performance.now() - startedAt) * 1_000;
  }
  closeSync(descriptor);
  return median(samples);
}

/** The median of a synced transaction of SQLite, in WAL mode, that inserts one row of 600 bytes. */
export function commitMicroseconds(file: string, count: number): number {
  const database = new DatabaseSync(file);
  database.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE IF NOT EXISTS rows (text TEXT)");
  const insert = database.prepare("INSERT INTO rows (text) VALUES (?)");
  const text = "x".repeat(600);
  const samples = new Float64Array(count);
  for (let i = 0; i < count; i += 1) {
    const startedAt = performance.now();
    insert.run(text);
    samples[i] = (performance.now() - startedAt) * 1_000;
  }
  database.close();
  return median(samples);
}
