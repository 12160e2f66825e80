import { closeSync, readSync } from "node:fs";
import { isRecord } from "../../protocol/objects.ts";
import { openSessionFileSync, unusable } from "./open-file.ts";

/** The first line of a session file. */
export interface StoredHeader {
  readonly id: string;
  readonly version: number;
  readonly cwd: string;
  /** Unix milliseconds; 0 if the file does not have it. */
  readonly createdAt: number;
  /** The file of the session from which it was forked. */
  readonly parent?: string;
}

export const maxHeaderBytes = 64 * 1024;
/** The newest known version of pi's session files. pi migrates older ones by itself. */
export const newestVersion = 3;
const idPattern = /^[0-9A-Za-z]([0-9A-Za-z._-]{0,126}[0-9A-Za-z])?$/;

export function isSessionId(id: unknown): id is string {
  return typeof id === "string" && idPattern.test(id);
}

/**
 * Throws `session_file_unusable` with the reason. Synchronous, because a `hello` must be decided immediately; a pipe
 * at the file's path does not block it.
 */
export function readStoredHeader(file: string): StoredHeader {
  const descriptor = opened(file);
  try {
    const bytes = Buffer.alloc(maxHeaderBytes);
    const bytesRead = readSync(descriptor, bytes, 0, maxHeaderBytes, 0);
    if (bytesRead === 0) throw unusable(file, "header_damaged", "is empty");
    return headerIn(file, bytes.toString("utf8", 0, bytesRead).split("\n", 1)[0] ?? "");
  } finally {
    closeSync(descriptor);
  }
}

function opened(file: string): number {
  try {
    return openSessionFileSync(file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    throw unusable(file, "missing", "does not exist", error);
  }
}

/** Throws `session_file_unusable` with the reason. */
export function headerIn(file: string, line: string): StoredHeader {
  const header = parsed(line);
  if (!isRecord(header) || header["type"] !== "session") {
    throw unusable(file, "header_damaged", "does not begin with the header of a session");
  }
  const { id, cwd, timestamp, version = 1, parentSession: parent } = header;
  if (!Number.isInteger(version) || Number(version) > newestVersion) {
    throw unusable(file, "version_unknown", `is of version ${JSON.stringify(version)}, which is not supported`);
  }
  if (!isSessionId(id)) throw unusable(file, "header_damaged", "has no id in its header");
  if (typeof cwd !== "string" || cwd === "") throw unusable(file, "header_damaged", "has no directory in its header");
  const createdAt = Date.parse(String(timestamp));
  return {
    id,
    version: Number(version),
    cwd,
    createdAt: Number.isNaN(createdAt) ? 0 : createdAt,
    ...(typeof parent === "string" ? { parent } : {}),
  };
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}
