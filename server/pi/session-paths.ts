import { existsSync, realpathSync } from "node:fs";
import { basename, dirname, isAbsolute, join, sep } from "node:path";
import { unusable } from "./lease.ts";

/**
 * The path that a pi says of a new session; the file need not be there yet. Throws `session_file_unusable` for one that is
 * no session's by its name, or whose directory, or what a link at its end leads to, lies in none of the directories.
 */
export function requireOwnPath(file: string, directories: readonly (string | undefined)[]): void {
  if (!isAbsolute(file) || file.includes("\0")) throw unusable(file, "not_absolute", "is not an absolute path");
  if (!file.endsWith(".jsonl")) throw unusable(file, "not_a_session", "is none by its name");
  const resolved = existsSync(file) ? realOf(file) : join(realOf(dirname(file)) ?? "", basename(file));
  const roots = directories.map((directory) => (directory === undefined ? undefined : realOf(directory)));
  if (!roots.some((root) => root !== undefined && resolved?.startsWith(`${root}${sep}`) === true)) {
    throw unusable(file, "outside", "is in none of pi's session directories");
  }
}

/** One file may have several paths. */
export function isSameFile(one: string, other: string): boolean {
  if (one === other) return true;
  try {
    return realpathSync(one) === realpathSync(other);
  } catch {
    return false;
  }
}

function realOf(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch {
    return undefined;
  }
}
