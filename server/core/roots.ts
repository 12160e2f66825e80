import { realpath } from "node:fs/promises";
import { resolve, sep } from "node:path";
import { WireError } from "../../protocol/errors.ts";

/** Directories below which everything must lie that a client names. Undefined or empty: anywhere. */
export type Roots = readonly string[] | undefined;

/** Whether a path, which has no links in it, is one of the roots or lies below one. */
export async function liesUnder(path: string, roots: Roots): Promise<boolean> {
  if (roots === undefined || roots.length === 0) return true;
  // Looked at each time: a root may be made, or be a link that is changed, after the daemon's start.
  const real = await Promise.all(roots.map((root) => realpath(root).catch(() => resolve(root))));
  return real.some((root) => path === root || path.startsWith(root.endsWith(sep) ? root : `${root}${sep}`));
}

/** Throws `cwd_invalid` for a working directory, without links, that lies under none of the roots. */
export async function requireRoot(cwd: string, roots: Roots): Promise<void> {
  if (await liesUnder(cwd, roots)) return;
  throw new WireError(
    "cwd_invalid",
    `The working directory ${JSON.stringify(cwd)} lies under none of the roots of the daemon's configuration.`,
    { cwd, reason: "outside" },
  );
}
