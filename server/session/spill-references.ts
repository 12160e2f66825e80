import { open, readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { setImmediate as turn } from "node:timers/promises";

export interface ScanLimits {
  /** Session files that are looked through. */
  readonly maxFiles: number;
  /** Their bytes. */
  readonly maxScanBytes: number;
}

/** What is read at a time. */
const chunkBytes = 256 * 1024;
/** A reference is no longer than this, and may lie across two chunks. */
const overlap = 128;
const key = Buffer.from("sha256");

/**
 * The session files in these directories, and in pi's own, that were written since then. Undefined: there are more than may
 * be looked through, or a directory that is there cannot be read.
 */
export async function sessionFilesIn(
  root: string,
  directories: readonly string[],
  since: number,
  { maxFiles }: ScanLimits,
): Promise<readonly string[] | undefined> {
  const found = new Set<string>();
  const all = new Set([root, ...(await entriesOf(root)).filter((path) => !path.endsWith(".jsonl")), ...directories]);
  for (const directory of all) {
    for (const path of await entriesOf(directory)) {
      if (!path.endsWith(".jsonl")) continue;
      const file = await stat(path).catch(ifThere);
      if (file?.isFile() !== true || file.mtimeMs < since) continue;
      found.add(path);
      if (found.size > maxFiles) return undefined;
    }
  }
  return [...found];
}

/**
 * Those of the names that no file has as a reference. Undefined: there is more to read than may be read. It gives way to
 * others behind each piece. Throws where a file that is there cannot be read, and the signal's reason.
 */
export async function findReferred(
  files: readonly string[],
  names: ReadonlySet<string>,
  { maxScanBytes }: ScanLimits,
  signal: AbortSignal,
): Promise<ReadonlySet<string> | undefined> {
  const left = new Set(names);
  const bytes = Buffer.alloc(overlap + chunkBytes);
  let read = 0;
  for (const path of files) {
    const file = await open(path, "r").catch(ifThere);
    if (file === undefined) continue;
    try {
      let kept = 0;
      for (;;) {
        signal.throwIfAborted();
        if (left.size === 0) return left;
        const { bytesRead } = await file.read(bytes, kept, chunkBytes);
        if (bytesRead === 0) break;
        read += bytesRead;
        if (read > maxScanBytes) return undefined;
        const end = kept + bytesRead;
        takeReferred(bytes.subarray(0, end), left);
        kept = Math.min(overlap, end);
        bytes.copyWithin(0, end - kept, end);
        await turn();
      }
    } finally {
      await file.close();
    }
  }
  return left;
}

function takeReferred(bytes: Buffer, left: Set<string>): void {
  for (let at = bytes.indexOf(key); at !== -1; at = bytes.indexOf(key, at + key.length)) {
    const behind = bytes.toString("latin1", at + key.length, at + overlap);
    const name = /^\\?"\s{0,8}:\s{0,8}\\?"([0-9a-f]{64})/.exec(behind)?.[1];
    if (name !== undefined) left.delete(name);
  }
}

async function entriesOf(directory: string): Promise<string[]> {
  const names = await readdir(directory).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT" || error.code === "ENOTDIR") return [] as string[];
    throw error;
  });
  return names.map((name) => join(directory, name));
}

function ifThere(error: NodeJS.ErrnoException): undefined {
  if (error.code !== "ENOENT") throw error;
}
