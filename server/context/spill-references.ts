import { constants } from "node:fs";
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

/** `too_much`: there is more than may be looked through. `changing`: a file went while it was looked for; later it may be clear. */
export type Doubt = "too_much" | "changing";

/** What is looked through: pi's own directory of sessions with those in it, and these. */
export interface Places {
  readonly root: string;
  readonly directories: readonly string[];
}

/**
 * Those of the names that no session file has as a reference. Behind the whole, what came or changed meanwhile is looked
 * through too, as a fork whose origin goes. It gives way to others behind each piece. Throws where a directory or a file that
 * is there cannot be read, and the signal's reason.
 */
export async function findUnreferred(
  places: Places,
  names: ReadonlySet<string>,
  limits: ScanLimits,
  signal: AbortSignal,
): Promise<ReadonlySet<string> | Doubt> {
  const left = new Set(names);
  const scan = new Scan(left, limits.maxScanBytes, signal);
  const looked = new Map<string, string>();
  for (const _round of ["all", "what changed"]) {
    const files = await sessionFilesIn(places, limits, signal);
    if (typeof files === "string") return files;
    for (const [path, state] of files) {
      if (left.size === 0) return left;
      if (looked.get(path) === state) continue;
      const doubt = await scan.take(path);
      if (doubt !== undefined) return doubt;
      looked.set(path, state);
    }
  }
  return left;
}

/** Session files, and how each was. */
async function sessionFilesIn(
  { root, directories }: Places,
  { maxFiles }: ScanLimits,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, string> | Doubt> {
  const found = new Map<string, string>();
  const all = new Set([root, ...(await entriesOf(root)).filter((path) => !path.endsWith(".jsonl")), ...directories]);
  for (const directory of all) {
    signal.throwIfAborted();
    for (const path of await entriesOf(directory)) {
      if (!path.endsWith(".jsonl")) continue;
      const file = await stat(path).catch(ifThere);
      if (file === undefined) return "changing";
      if (!file.isFile()) continue;
      found.set(path, `${file.ino} ${file.size} ${file.mtimeMs}`);
      if (found.size > maxFiles) return "too_much";
    }
  }
  return found;
}

/** Takes out of what is left the names that files refer to. */
class Scan {
  readonly #left: Set<string>;
  readonly #maxBytes: number;
  readonly #signal: AbortSignal;
  readonly #bytes = Buffer.alloc(overlap + chunkBytes);
  #read = 0;

  constructor(left: Set<string>, maxBytes: number, signal: AbortSignal) {
    this.#left = left;
    this.#maxBytes = maxBytes;
    this.#signal = signal;
  }

  async take(path: string): Promise<Doubt | undefined> {
    // What is put in a file's place is not waited for.
    const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK).catch(ifThere);
    if (file === undefined) return "changing";
    const bytes = this.#bytes;
    try {
      if (!(await file.stat()).isFile()) return "changing";
      let kept = 0;
      for (;;) {
        this.#signal.throwIfAborted();
        const { bytesRead } = await file.read(bytes, kept, chunkBytes);
        if (bytesRead === 0) return undefined;
        this.#read += bytesRead;
        if (this.#read > this.#maxBytes) return "too_much";
        const end = kept + bytesRead;
        takeReferred(bytes.subarray(0, end), this.#left);
        kept = Math.min(overlap, end);
        bytes.copyWithin(0, end - kept, end);
        await turn();
      }
    } finally {
      await file.close();
    }
  }
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
