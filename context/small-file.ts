import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";

/** Reads a small file whole. Throws if it is longer than `maxBytes`, and what {@link fileStart} throws. */
export function smallFile(path: string, maxBytes: number): Buffer {
  const bytes = fileStart(path, maxBytes + 1);
  if (bytes.length > maxBytes) throw new Error(`${path} has more than ${maxBytes} bytes.`);
  return bytes;
}

/** Reads at most `maxBytes`. Throws if the path is unreadable or not a regular file; never blocks on a pipe. */
export function fileStart(path: string, maxBytes: number): Buffer {
  const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    if (!fstatSync(file).isFile()) throw new Error(`${path} is not a regular file.`);
    const bytes = Buffer.alloc(maxBytes);
    return bytes.subarray(0, readSync(file, bytes, 0, maxBytes, 0));
  } finally {
    closeSync(file);
  }
}
