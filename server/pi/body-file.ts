import { closeSync, constants, fstatSync, openSync, readFileSync, rmSync } from "node:fs";
import { readdir, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { isRecord } from "../../protocol/objects.ts";
import { isOneObject } from "./structure.ts";

/**
 * Reads the JSON that the helper wrote to a file: unchanged bytes, or nothing if the file is invalid. Deletes the
 * file. Reads synchronously, to keep the order of pi's records; the file is small and was written a moment ago.
 */
export function takeBody(path: string, kind: "array" | "object", maxBytes: number): Buffer | undefined {
  try {
    const bytes = readOwn(path, maxBytes);
    return isJson(bytes, kind) ? bytes : undefined;
  } catch {
    return undefined;
  } finally {
    dropBody(path);
  }
}

/** Deletes a file that is not needed. */
export function dropBody(path: string): void {
  try {
    rmSync(path, { force: true });
  } catch {
    // It is not a regular file, so not the helper's.
  }
}

/** Deletes files of a child that were never read. */
export async function dropBodies(prefix: string): Promise<void> {
  try {
    const names = await readdir(dirname(prefix));
    const left = names.filter((name) => name.startsWith(basename(prefix)));
    await Promise.all(left.map((name) => rm(join(dirname(prefix), name), { force: true })));
  } catch {
    // The daemon is shutting down, and its directory was deleted.
  }
}

function readOwn(path: string, maxBytes: number): Buffer {
  const descriptor = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    const stat = fstatSync(descriptor);
    if (!stat.isFile() || stat.uid !== process.getuid?.() || (stat.mode & 0o077) !== 0 || stat.size > maxBytes) {
      throw new Error("The file does not belong to the helper, or is too large.");
    }
    return readFileSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** It becomes a part of a notification, which invalid or too deeply nested JSON would corrupt. */
function isJson(bytes: Buffer, kind: "array" | "object"): boolean {
  if (!isOneObject(Buffer.concat([Buffer.from('{"body":'), bytes, Buffer.from("}")]))) return false;
  const value: unknown = JSON.parse(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes));
  return kind === "array" ? Array.isArray(value) : isRecord(value);
}
