import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";

/** Bytes of a prompt; the rest of the file is ignored. */
const maxPromptBytes = 64 * 1_024;

/** Reads a prompt file. Throws if it is empty, unreadable or not a regular file; never blocks on a pipe. */
export function promptIn(path: string): string {
  const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    if (!fstatSync(file).isFile()) throw new Error(`${path} is not a regular file.`);
    const bytes = Buffer.alloc(maxPromptBytes);
    const text = bytes.toString("utf8", 0, readSync(file, bytes, 0, maxPromptBytes, 0)).trim();
    if (text === "") throw new Error(`${path} is empty.`);
    return text;
  } finally {
    closeSync(file);
  }
}
