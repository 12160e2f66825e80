import { chmodSync, existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { StoreDamage } from "../../protocol/daemon.ts";

const parts = ["", "-wal", "-shm"] as const;
const maxKept = 3;

/** The new name of a damaged store: with the time, in the same directory. */
export function asidePath(path: string, at: number): string {
  return `${path}.damaged-${new Date(at).toISOString().replace(/[-:.]/g, "")}`;
}

/** Replaces the damaged store by the rebuilt one. Can be repeated after an interruption. */
export function replaceStore(path: string, rebuilt: string, report: StoreDamage): void {
  for (const part of parts) {
    const [from, to] = [`${path}${part}`, `${report.path}${part}`];
    if (!existsSync(from)) continue;
    // It was renamed before the interruption.
    if (existsSync(to)) rmSync(from);
    else renameSync(from, to);
    chmodSync(to, 0o600);
  }
  writeFileSync(`${report.path}.json`, `${JSON.stringify(report, null, 2)}\n`, { mode: 0o600 });
  renameSync(rebuilt, path);
  for (const { path: old } of damagedStores(path).slice(maxKept)) {
    for (const part of [...parts, ".json"]) rmSync(`${old}${part}`, { force: true });
  }
}

/** Stores that were set aside and still exist, newest first. */
export function damagedStores(path: string): readonly StoreDamage[] {
  const directory = dirname(path);
  const head = `${basename(path)}.damaged-`;
  return readdirSync(directory)
    .filter((name) => name.startsWith(head) && name.endsWith(".json"))
    .sort()
    .reverse()
    .flatMap((name) => readReport(join(directory, name)));
}

function readReport(file: string): StoreDamage[] {
  try {
    return [JSON.parse(readFileSync(file, "utf8")) as StoreDamage];
  } catch {
    return [];
  }
}
