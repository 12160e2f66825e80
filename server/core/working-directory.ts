import { access, constants, realpath, stat } from "node:fs/promises";
import { isAbsolute, resolve } from "node:path";
import { WireError } from "../../protocol/errors.ts";
import { exhaustion } from "../pi/exhaustion.ts";
import type { SessionScope } from "./session-scope.ts";

/** The directory as the system names it, without links. Throws `cwd_invalid` with what is wrong with it. */
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
      : problem(`cannot be looked at (${code})`, "unreadable", cause);
  }
  try {
    await access(resolved, constants.R_OK | constants.X_OK);
  } catch (cause) {
    throw problem("may not be read or entered by this user", "unreadable", cause);
  }
  return resolved;
}

/**
 * A session's directory has become a link. Who may use the session was decided by the path that it had: the path that the
 * link leads to is not named, for it may be outside of what the caller may know.
 */
export function movedDirectory(cwd: string): WireError {
  const why = "is reached by a link now. Put the directory back, or close the session and open its file again";
  return new WireError("cwd_invalid", `The session's directory ${JSON.stringify(cwd)} ${why}.`, {
    cwd,
    reason: "moved",
  });
}

/** As {@link workingDirectory}, if `admit` does not throw at it. Throws `overloaded` where the system has run out of files. */
export async function admittedDirectory(cwd: string, admit: (scope: SessionScope) => void): Promise<string> {
  const directory = await workingDirectory(cwd).catch((error: unknown) => {
    // Who may not be there does not learn what is there.
    admit({ cwd: resolve(cwd) });
    throw exhaustion(error) ?? error;
  });
  admit({ cwd: directory });
  return directory;
}
