import { access, constants, realpath, stat } from "node:fs/promises";
import { isAbsolute, resolve } from "node:path";
import { WireError } from "../../protocol/errors.ts";
import { exhaustion } from "../pi/exhaustion.ts";
import type { SessionScope } from "./session-scope.ts";

/** The resolved directory. Throws `cwd_invalid` with the reason. */
export async function workingDirectory(cwd: string): Promise<string> {
  const problem = (why: string, reason: string, cause?: unknown): WireError =>
    new WireError("cwd_invalid", `The working directory ${JSON.stringify(cwd)} ${why}.`, { cwd, reason }, { cause });
  if (!isAbsolute(cwd)) throw problem("is not an absolute path", "not_absolute");
  if (cwd.includes("\0")) throw problem("is not a path", "not_a_path");
  let resolved: string;
  try {
    resolved = await realpath(cwd);
    if (!(await stat(resolved)).isDirectory()) throw problem("is not a directory", "not_a_directory");
  } catch (cause) {
    if (cause instanceof WireError) throw cause;
    const { code } = cause as NodeJS.ErrnoException;
    throw code === "ENOENT"
      ? problem("does not exist", "missing", cause)
      : problem(`cannot be read (${code})`, "unreadable", cause);
  }
  try {
    await access(resolved, constants.R_OK | constants.X_OK);
  } catch (cause) {
    throw problem("may not be read or entered by this user", "unreadable", cause);
  }
  return resolved;
}

/**
 * A session's directory was replaced by a link. Access was decided by the original path, so the target of the link is
 * not named: it may be outside the caller's roots.
 */
export function movedDirectory(cwd: string): WireError {
  const why = "is now a link. Restore the directory, or close the session and open its file again";
  return new WireError("cwd_invalid", `The session's directory ${JSON.stringify(cwd)} ${why}.`, {
    cwd,
    reason: "moved",
  });
}

/**
 * As {@link workingDirectory}, if `admit` does not throw. Throws `overloaded` when the system has run out of files.
 */
export async function admittedDirectory(cwd: string, admit: (scope: SessionScope) => void): Promise<string> {
  const directory = await workingDirectory(cwd).catch((error: unknown) => {
    // An unauthorised caller does not learn whether the path exists.
    admit({ cwd: resolve(cwd) });
    throw exhaustion(error) ?? error;
  });
  admit({ cwd: directory });
  return directory;
}
