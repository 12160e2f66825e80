import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";

/** Bytes of a prompt; what is behind them is not read. */
const maxPromptBytes = 64 * 1_024;

/** The words of a file. Throws where it is empty, cannot be read or is no plain file: nobody waits for a pipe. */
export function promptIn(path: string): string {
  const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    if (!fstatSync(file).isFile()) throw new Error(`${path} is not a file.`);
    const bytes = Buffer.alloc(maxPromptBytes);
    const text = bytes.toString("utf8", 0, readSync(file, bytes, 0, maxPromptBytes, 0)).trim();
    if (text === "") throw new Error(`${path} is empty.`);
    return text;
  } finally {
    closeSync(file);
  }
}
