import { closeSync, constants, fstatSync, openSync, readFileSync, rmSync } from "node:fs";
import { readdir, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { isOneObject } from "./structure.ts";

/**
 * Takes the JSON that the helper has left in a file: its bytes as they are, or nothing if the file is not what it must
 * be. The file is gone afterwards. It is read at once, so that what is told of it stays in order with pi's records: it is
 * bounded, and was written a moment ago.
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

/** Deletes a file that nobody wants. */
export function dropBody(path: string): void {
  try {
    rmSync(path, { force: true });
  } catch {
    // It is no file, and not the helper's.
  }
}

/** Deletes what a child has left and nobody has taken. */
export async function dropBodies(prefix: string): Promise<void> {
  try {
    const names = await readdir(dirname(prefix));
    const left = names.filter((name) => name.startsWith(basename(prefix)));
    await Promise.all(left.map((name) => rm(join(dirname(prefix), name), { force: true })));
  } catch {
    // The daemon ends, and its directory is gone.
  }
}

function readOwn(path: string, maxBytes: number): Buffer {
  const descriptor = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    const stat = fstatSync(descriptor);
    if (!stat.isFile() || stat.uid !== process.getuid?.() || (stat.mode & 0o077) !== 0 || stat.size > maxBytes) {
      throw new Error("The file is not the helper's, or too large.");
    }
    return readFileSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** It becomes a part of a notification: what is no JSON, or nested too deep, would spoil the whole. */
function isJson(bytes: Buffer, kind: "array" | "object"): boolean {
  if (!isOneObject(Buffer.concat([Buffer.from('{"body":'), bytes, Buffer.from("}")]))) return false;
  const value: unknown = JSON.parse(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes));
  return kind === "array" ? Array.isArray(value) : typeof value === "object" && value !== null && !Array.isArray(value);
}
