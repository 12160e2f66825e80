import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";

/**
 * Reads a small file that others may change at the same time: at most `maxBytes`, and without waiting for a pipe.
 * Throws the errors of opening and reading, except for a missing file.
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
