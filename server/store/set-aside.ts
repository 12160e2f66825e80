import { chmodSync, existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { StoreDamage } from "../../protocol/daemon.ts";

const parts = ["", "-wal", "-shm"] as const;
const maxKept = 3;

/** The name under which a store is set aside: beside it, with the time. */
export function asidePath(path: string, at: number): string {
  return `${path}.damaged-${new Date(at).toISOString().replace(/[-:.]/g, "")}`;
}

/** Puts a store that was built in the place of the damaged one. May be called again where it was interrupted. */
export function replaceStore(path: string, rebuilt: string, report: StoreDamage): void {
  for (const part of parts) {
    const [from, to] = [`${path}${part}`, `${report.path}${part}`];
    if (!existsSync(from)) continue;
    // What lies there was set aside before the interruption, and is what was found.
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

/** What was set aside and still lies there, the newest first. */
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
