import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { agentDirectoryOf } from "./session-file.ts";

/** Files that pi reads at its start, in its own directory and in the project's. */
const inAgentDirectory = [
  "settings.json",
  "models.json",
  "auth.json",
  "mcp.json",
  "SYSTEM.md",
  "APPEND_SYSTEM.md",
  "extensions",
  "skills",
  "prompts",
];
const maxEntries = 512;
const maxDepth = 4;

export interface PiInputsOf {
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
  /** Further files and directories, such as configured extensions. */
  readonly further: readonly string[];
}

/**
 * A text that changes with the files on which pi's start depends, in addition to its arguments: names, sizes and
 * times of its settings and extensions. `undefined` if there are too many.
 */
export async function inputsOf({ cwd, env, further }: PiInputsOf): Promise<string | undefined> {
  const agentDirectory = agentDirectoryOf(env);
  const roots = [...inAgentDirectory.map((name) => join(agentDirectory, name)), join(cwd, ".pi"), ...further];
  const found: string[] = [];
  await Promise.all(roots.map((root) => look(root, 0, found)));
  return found.length > maxEntries ? undefined : found.toSorted().join("\n");
}

async function look(path: string, depth: number, found: string[]): Promise<void> {
  if (found.length > maxEntries) return;
  const facts = await stat(path).catch(() => undefined);
  if (facts === undefined) return;
  found.push(`${path} ${facts.ino} ${facts.size} ${facts.mtimeMs}`);
  if (!facts.isDirectory() || depth >= maxDepth) return;
  const names = await readdir(path).catch(() => []);
  for (const name of names.toSorted()) {
    // Installed packages change together with the manifest next to them.
    if (name !== "node_modules" && name !== ".git") await look(join(path, name), depth + 1, found);
  }
}
