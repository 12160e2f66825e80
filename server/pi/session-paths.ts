import { existsSync, realpathSync, statSync } from "node:fs";
import { basename, dirname, isAbsolute, join, sep } from "node:path";
import { checkFile } from "./lease.ts";
import { unusable } from "./open-file.ts";
import { readStoredHeader } from "./stored-header.ts";

/**
 * Checks the path that a pi reports for a new session; the file may be missing. Throws `session_file_unusable` if the
 * name is not a session file's, or if its directory, or the target of a link there, is in none of the directories.
 */
export function requireOwnPath(file: string, directories: readonly (string | undefined)[]): void {
  if (!isAbsolute(file) || file.includes("\0")) throw unusable(file, "not_absolute", "is not an absolute path");
  if (!file.endsWith(".jsonl")) throw unusable(file, "not_a_session", "does not have the name of a session file");
  const resolved = existsSync(file) ? realOf(file) : join(realOf(dirname(file)) ?? "", basename(file));
  if (resolved === undefined || !isInside(resolved, directories))
    throw unusable(file, "outside", "is not in one of pi's session directories");
}

/** Whether a real path is below one of the directories. */
export function isInside(file: string, directories: readonly (string | undefined)[]): boolean {
  return directories.some((directory) => {
    const root = directory === undefined ? undefined : realOf(directory);
    return root !== undefined && file.startsWith(`${root}${sep}`);
  });
}

/** A session and its file. */
export interface SessionFileOwner {
  readonly sessionId: string;
  readonly file: string;
}

/**
 * Ensures that no two sessions share a file, however a session begins: an existing file must have the session's id in
 * its header, and a single hard link; a path without a file (or with an empty one) must not be another session's
 * path. Throws `session_file_unusable`.
 */
export function requireOwnFile({ sessionId, file }: SessionFileOwner, others: Iterable<SessionFileOwner>): void {
  checkFile(file);
  if (hasContent(file)) requireOwnHeader({ sessionId, file });
  else {
    // Some file systems treat names as equal that differ in letter case or Unicode normalization.
    const folded = (path: string): string => realPathOf(path).normalize("NFC").toLowerCase();
    const own = folded(file);
    for (const other of others) {
      if (other.sessionId !== sessionId && folded(other.file) === own) {
        throw unusable(file, "other_session", `belongs to the session ${other.sessionId}`);
      }
    }
  }
}

/** Throws `session_file_unusable` if the file does not begin with this session's header. */
export function requireOwnHeader({ sessionId, file }: SessionFileOwner): void {
  const { id } = readStoredHeader(file);
  if (id !== sessionId) throw unusable(file, "other_session", `belongs to the session ${id}`);
}

/** The path with links of directories resolved; the file may be missing. */
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
