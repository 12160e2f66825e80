import { createHash } from "node:crypto";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { codeCaches } from "./pi/code-caches.ts";

/** Why the daemon of a state directory ended, if its log was lost with that directory. */
export interface PreviousExit {
  /** Unix milliseconds. */
  readonly at: number;
  readonly message: string;
}

/**
 * Stores the reason for the next start on this state directory, in a private directory of the user's cache. Never
 * throws.
 */
export function storeExit(stateDir: string, env: NodeJS.ProcessEnv, end: PreviousExit): void {
  const file = fileOf(stateDir, env);
  if (file === undefined) return;
  try {
    writeFileSync(file, JSON.stringify(end), { mode: 0o600 });
  } catch {
    // The daemon's stderr and exit code still report it.
  }
}

/** Returns the stored reason, once. */
export function takeExit(stateDir: string, env: NodeJS.ProcessEnv): PreviousExit | undefined {
  const file = fileOf(stateDir, env);
  if (file === undefined) return undefined;
  try {
    const { at, message } = JSON.parse(readFileSync(file, "utf8")) as Partial<PreviousExit>;
    return typeof at === "number" && typeof message === "string" ? { at, message } : undefined;
  } catch {
    return undefined;
  } finally {
    rmSync(file, { force: true });
  }
}

function fileOf(stateDir: string, env: NodeJS.ProcessEnv): string | undefined {
  const name = createHash("sha256").update(stateDir).digest("hex").slice(0, 32);
  const { directory } = codeCaches(env);
  return directory && join(directory, `ended-${name}.json`);
}
