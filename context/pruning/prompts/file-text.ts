import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";
import { isObject } from "../../../extension/pi-types.ts";

/**
 * Reads a small text file. `undefined`: it does not exist. Throws if it is too long, not UTF-8, unreadable or not a
 * regular file; never blocks on a pipe.
 */
export function fileText(path: string, maxBytes: number): string | undefined {
  const file = opened(path);
  if (file === undefined) return undefined;
  try {
    if (!fstatSync(file).isFile()) throw new Error("It is not a regular file.");
    const bytes = Buffer.alloc(maxBytes + 1);
    const length = readSync(file, bytes, 0, bytes.length, 0);
    if (length > maxBytes) throw new Error(`It has more than ${maxBytes} bytes.`);
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes.subarray(0, length));
  } finally {
    closeSync(file);
  }
}

function opened(path: string): number | undefined {
  try {
    return openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (thrown) {
    if (isObject(thrown) && thrown["code"] === "ENOENT") return undefined;
    throw thrown;
  }
}
