import { closeSync, constants, fstatSync, openSync, readFileSync, rmSync } from "node:fs";
import { isAbsolute } from "node:path";

/**
 * Reads and deletes a file that the daemon has left for this process: a regular file of the same user that nobody else
 * may open, of at most `maxBytes`. Anything else is refused and left where it is. Throws with the reason.
 */
export function takeOwnedFile(path: string, maxBytes: number): Buffer {
  if (!isAbsolute(path)) throw new Error("The path of the daemon's file is not absolute.");
  const descriptor = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    const { mode, size, uid, isFile } = described(descriptor);
    if (!isFile || uid !== process.getuid?.() || (mode & 0o077) !== 0) {
      throw new Error("The daemon's file is not a regular file that only this user may open.");
    }
    if (size > maxBytes) throw new Error(`The daemon's file has ${size} bytes; the limit is ${maxBytes}.`);
    rmSync(path, { force: true });
    return readFileSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

function described(descriptor: number): { mode: number; size: number; uid: number; isFile: boolean } {
  const stat = fstatSync(descriptor);
  return { mode: stat.mode, size: stat.size, uid: stat.uid, isFile: stat.isFile() };
}
