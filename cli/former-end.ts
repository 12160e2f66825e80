import { createHash } from "node:crypto";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Why the daemon of a state directory has ended, where its log was lost with that directory. */
export interface FormerEnd {
  /** Unix milliseconds. */
  readonly at: number;
  readonly message: string;
}

/** Keeps the end for the next start on this state directory, in the user's cache. */
export async function keepEnd(stateDir: string, env: NodeJS.ProcessEnv, end: FormerEnd): Promise<void> {
  const file = await fileOf(stateDir, env);
  if (file !== undefined) writeFileSync(file, JSON.stringify(end), { mode: 0o600 });
}

/** Returns the end that was kept, once. */
export async function takeEnd(stateDir: string, env: NodeJS.ProcessEnv): Promise<FormerEnd | undefined> {
  const file = await fileOf(stateDir, env);
  if (file === undefined) return undefined;
  try {
    const { at, message } = JSON.parse(readFileSync(file, "utf8")) as Partial<FormerEnd>;
    return typeof at === "number" && typeof message === "string" ? { at, message } : undefined;
  } catch {
    return undefined;
  } finally {
    rmSync(file, { force: true });
  }
}

async function fileOf(stateDir: string, env: NodeJS.ProcessEnv): Promise<string | undefined> {
  const { codeCaches } = await import("../server/pi/code-caches.ts");
  const { directory } = codeCaches(env);
  const name = createHash("sha256").update(stateDir).digest("hex").slice(0, 32);
  return directory && join(directory, `ended-${name}.json`);
}
