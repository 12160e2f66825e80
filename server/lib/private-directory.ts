import { dirname } from "node:path";
import { makeDirectory } from "./make-directory.ts";

// An import evaluates every export, also the lazy ones, and every command of the command line pays for it.
const { chmodSync, lstatSync, realpathSync } = process.getBuiltinModule("node:fs");

/**
 * Creates a directory that only this user can write (0700), and returns its path without links. Throws if another
 * user owns it, can write to it, or could replace it because a directory above it is owned or writable by another
 * user. The sticky bit (as on /tmp) prevents replacement.
 */
export function makePrivateDirectory(path: string): string {
  makeDirectory(path, 0o700);
  const real = realpathSync(path);
  const own = process.getuid?.();
  const found = lstatSync(real);
  if (!found.isDirectory()) throw new Error(`${real} is not a directory`);
  if (found.uid !== own) throw new Error(`${real} belongs to another user`);
  // Its contents may belong to another user.
  if ((found.mode & 0o022) !== 0) throw new Error(`other users can write to ${real}: delete it`);
  for (let above = dirname(real), below = real; above !== below; below = above, above = dirname(above)) {
    const { uid, gid, mode } = lstatSync(above);
    if (uid !== own && uid !== 0) throw new Error(`${above} belongs to another user`);
    const isSticky = (mode & 0o1000) !== 0;
    // Many systems give each user a private group with the same id.
    const isWritable = (mode & 0o002) !== 0 || ((mode & 0o020) !== 0 && gid !== own);
    if (isWritable && !isSticky) throw new Error(`other users can write to ${above}`);
  }
  // Only after the directories above are checked: another user could have put a link to any directory here.
  if ((found.mode & 0o077) !== 0) chmodSync(real, 0o700);
  return real;
}

/** The path of the program's cache directory; undefined if the environment has no absolute path for it. */
export function cacheDirectory({ XDG_CACHE_HOME: cacheHome, HOME: home }: NodeJS.ProcessEnv): string | undefined {
  if (cacheHome?.startsWith("/") === true) return `${cacheHome}/pi-rpcd`;
  return home?.startsWith("/") === true ? `${home}/.cache/pi-rpcd` : undefined;
}
