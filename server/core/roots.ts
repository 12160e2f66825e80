import { realpath } from "node:fs/promises";
import { resolve, sep } from "node:path";
import { WireError } from "../../protocol/errors.ts";

/** Every path that a client names must be in one of these directories. Undefined or empty: anywhere. */
export type Roots = readonly string[] | undefined;

/** Whether a resolved path is one of the roots or below one. */
export async function liesUnder(path: string, roots: Roots): Promise<boolean> {
  if (roots === undefined || roots.length === 0) return true;
  // Resolved each time: a root may be created, or its link changed, after the daemon's start.
  const real = await Promise.all(roots.map((root) => realpath(root).catch(() => resolve(root))));
  return real.some((root) => path === root || path.startsWith(root.endsWith(sep) ? root : `${root}${sep}`));
}

/** Throws `cwd_invalid` for a resolved working directory outside all roots. */
export async function requireRoot(cwd: string, roots: Roots): Promise<void> {
  if (await liesUnder(cwd, roots)) return;
  throw new WireError(
    "cwd_invalid",
    `The working directory ${JSON.stringify(cwd)} is outside the roots of the daemon's configuration.`,
    { cwd, reason: "outside" },
  );
}
