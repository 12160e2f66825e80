import { open } from "node:fs/promises";
import { unusable } from "./lease.ts";
import { isRecordObject } from "./records.ts";

/** What the first line of a session file says. */
export interface StoredHeader {
  readonly id: string;
  readonly cwd: string;
  /** Unix milliseconds; 0 where the file does not say it. */
  readonly createdAt: number;
}

const maxHeaderBytes = 64 * 1024;
/** The newest form of pi's session files that is known. pi brings older ones to it by itself. */
const newestVersion = 3;
const idPattern = /^[0-9A-Za-z]([0-9A-Za-z._-]{0,126}[0-9A-Za-z])?$/;

/** Throws `session_file_unusable` with what is wrong with the file. */
export async function readStoredHeader(file: string): Promise<StoredHeader> {
  const handle = await open(file, "r").catch((error: NodeJS.ErrnoException) => {
    throw error.code === "ENOENT"
      ? unusable(file, "missing", "is not there", error)
      : unusable(file, "unreadable", `cannot be read (${error.code})`, error);
  });
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(maxHeaderBytes), 0, maxHeaderBytes, 0);
    if (bytesRead === 0) throw unusable(file, "header_damaged", "is empty");
    return headerIn(file, buffer.toString("utf8", 0, bytesRead).split("\n", 1)[0] ?? "");
  } finally {
    await handle.close();
  }
}

function headerIn(file: string, line: string): StoredHeader {
  const header = parsed(line);
  if (!isRecordObject(header) || header["type"] !== "session") {
    throw unusable(file, "header_damaged", "does not begin with the header of a session");
  }
  const { id, cwd, timestamp, version = 1 } = header;
  if (!Number.isInteger(version) || Number(version) > newestVersion) {
    throw unusable(file, "version_unknown", `is of version ${JSON.stringify(version)}, which is not known here`);
  }
  if (typeof id !== "string" || !idPattern.test(id)) throw unusable(file, "header_damaged", "has no id in its header");
  if (typeof cwd !== "string" || cwd === "") throw unusable(file, "header_damaged", "has no directory in its header");
  const createdAt = Date.parse(String(timestamp));
  return { id, cwd, createdAt: Number.isNaN(createdAt) ? 0 : createdAt };
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}
