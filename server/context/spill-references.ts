import { constants } from "node:fs";
import { open, readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { setImmediate as turn } from "node:timers/promises";

export interface ScanLimits {
  /** Maximum number of session files to search. */
  readonly maxFiles: number;
  /** Maximum number of bytes to search. */
  readonly maxScanBytes: number;
}

/** Bytes read at a time. */
const chunkBytes = 256 * 1024;
/** A reference is at most this long, and may span two chunks. */
const overlap = 128;
const key = Buffer.from("sha256");

/**
 * `too_much`: the limits are exceeded. `changing`: a file disappeared during the search; a later search may succeed.
 */
export type Inconclusive = "too_much" | "changing";

/** The searched directories: pi's own session directory with its subdirectories, and these. */
export interface Places {
  readonly root: string;
  readonly directories: readonly string[];
}

/**
 * Returns the names that no session file refers to. After the first pass, files that were added or changed are
 * searched too, such as a fork whose origin was deleted. Yields to other work after each chunk. Throws where an
 * existing directory or file cannot be read, and the signal's reason.
 */
export async function findUnreferred(
  places: Places,
  names: ReadonlySet<string>,
  limits: ScanLimits,
  signal: AbortSignal,
): Promise<ReadonlySet<string> | Inconclusive> {
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

/** Session files, with their size and times. */
async function sessionFilesIn(
  { root, directories }: Places,
  { maxFiles }: ScanLimits,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, string> | Inconclusive> {
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

/** Removes the names that files refer to. */
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

  async take(path: string): Promise<Inconclusive | undefined> {
    // Does not wait for a pipe that replaced the file.
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
    const rest = bytes.toString("latin1", at + key.length, at + overlap);
    const name = /^\\?"\s{0,8}:\s{0,8}\\?"([0-9a-f]{64})/.exec(rest)?.[1];
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
