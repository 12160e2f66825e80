import { closeSync, constants, fstatSync, openSync, readFileSync, rmSync } from "node:fs";
import { isAbsolute } from "node:path";

/**
 * Reads and deletes a file that the daemon wrote for this process. Throws, and leaves the file in place, unless it is a
 * regular file of at most `maxBytes` that only this user may open.
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
