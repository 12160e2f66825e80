import { existsSync, realpathSync, statSync } from "node:fs";
import { basename, dirname, isAbsolute, join, sep } from "node:path";
import { checkFile, unusable } from "./lease.ts";
import { readStoredHeader } from "./stored-header.ts";

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

/** A session and its file. */
export interface SessionFileOwner {
  readonly sessionId: string;
  readonly file: string;
}

/**
 * The rule that no two sessions share a file, for every way in which a session begins: a file that exists has the session's
 * id in its header, and one name only; a path without a file (or with an empty one) is no other session's path. Throws
 * `session_file_unusable`.
 */
export function requireOwnFile({ sessionId, file }: SessionFileOwner, others: Iterable<SessionFileOwner>): void {
  checkFile(file);
  if (hasContent(file)) requireOwnHeader({ sessionId, file });
  else {
    // Some file systems take names that differ in letter case or Unicode form for one.
    const folded = (path: string): string => realPathOf(path).normalize("NFC").toLowerCase();
    const own = folded(file);
    for (const other of others) {
      if (other.sessionId !== sessionId && folded(other.file) === own) {
        throw unusable(file, "other_session", `is that of the session ${other.sessionId}`);
      }
    }
  }
}

/** Throws `session_file_unusable` where the file does not begin with this session's header. */
export function requireOwnHeader({ sessionId, file }: SessionFileOwner): void {
  const { id } = readStoredHeader(file);
  if (id !== sessionId) throw unusable(file, "other_session", `is that of the session ${id}`);
}

/** The path without links of directories; the file need not exist. */
export function realPathOf(file: string): string {
  const directory = dirname(file);
  return join(realOf(directory) ?? directory, basename(file));
}

/** One file may have several paths. */
export function isSameFile(one: string, other: string): boolean {
  if (one === other) return true;
  const [first, second] = [realOf(one), realOf(other)];
  return first !== undefined && first === second;
}

function hasContent(file: string): boolean {
  const found = statSync(file, { throwIfNoEntry: false });
  return found !== undefined && found.size > 0;
}

function realOf(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch {
    return undefined;
  }
}
