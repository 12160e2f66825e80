import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";

/**
 * The bytes of a small file that others may change meanwhile: never more than `maxBytes` are read, and nobody waits for a
 * pipe. Throws what opening and reading throw, but for a file that is absent.
 */
export function readBounded(path: string, maxBytes: number): Buffer | "absent" | "no file" | "too long" {
  let file: number;
  try {
    file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (thrown) {
    // A socket cannot be opened.
    const { code } = thrown as NodeJS.ErrnoException;
    if (code === "ENXIO") return "no file";
    if (code === "ENOENT") return "absent";
    throw thrown;
  }
  try {
    if (!fstatSync(file).isFile()) return "no file";
    const bytes = Buffer.alloc(maxBytes + 1);
    let length = 0;
    while (length < bytes.length) {
      const read = readSync(file, bytes, length, bytes.length - length, null);
      if (read === 0) break;
      length += read;
    }
    return length > maxBytes ? "too long" : bytes.subarray(0, length);
  } finally {
    closeSync(file);
  }
}
