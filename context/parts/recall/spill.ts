import { createHash, randomUUID } from "node:crypto";
import {
  closeSync,
  constants,
  fstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

/** A text in a file. */
export interface Spilled {
  readonly sha256: string;
  readonly bytes: number;
}

/** Larger logs are not copied, because copying would block pi. */
const maxLogBytes = 32 * 1024 * 1024;

/** The name of a spilled text: the SHA-256 of its bytes. */
export function sumOf(bytes: Uint8Array): Spilled {
  return { sha256: createHash("sha256").update(bytes).digest("hex"), bytes: bytes.byteLength };
}

/**
 * Puts a text into the directory, under its sum, 0600, whole or not at all. One that is there already is used again; it
 * gets a new modification time for the cleanup. Throws file system errors.
 */
export function spill(directory: string, bytes: Uint8Array, { sha256 }: Spilled): void {
  const path = join(directory, sha256);
  if (isThere(path, { sha256, bytes: bytes.byteLength })) return;
  const fresh = join(directory, `.${sha256}.${randomUUID()}`);
  try {
    makeDirectory(directory);
    writeFileSync(fresh, bytes, { mode: 0o600, flag: "wx" });
    renameSync(fresh, path);
  } catch (thrown) {
    rmSync(fresh, { force: true });
    throw thrown;
  }
}

/** The text of this sum. `undefined`: it is not there, or is not what it was. */
export async function readSpilled(directory: string, { sha256, bytes }: Spilled): Promise<string | undefined> {
  try {
    const path = join(directory, sha256);
    // What is longer is not read.
    if (statSync(path).size !== bytes) return undefined;
    const content = await readFile(path);
    return sumOf(content).sha256 === sha256 ? content.toString("utf8") : undefined;
  } catch {
    return undefined;
  }
}

/**
 * The whole output of a command, in the log that pi's tool has named. Only a log of pi's own is read, by its name and
 * place: what a command prints can name any file. `undefined`: there is none, or it is too large.
 */
export function readLog(path: string): Buffer | undefined {
  if (dirname(path) !== tmpdir() || !/^pi-[\w-]{1,64}\.log$/u.test(path.slice(tmpdir().length + 1))) return undefined;
  let descriptor: number | undefined;
  try {
    descriptor = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    const stat = fstatSync(descriptor);
    if (!stat.isFile() || stat.uid !== process.getuid?.() || stat.size > maxLogBytes) return undefined;
    return readFileSync(descriptor);
  } catch {
    return undefined;
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
}

/** A file of this size need not have these bytes: a machine that lost power can have left zeros. */
function isThere(path: string, { sha256, bytes }: Spilled): boolean {
  try {
    if (statSync(path).size !== bytes || sumOf(readFileSync(path)).sha256 !== sha256) return false;
    const now = new Date();
    utimesSync(path, now, now);
    return true;
  } catch {
    return false;
  }
}

/** The directory alone: the daemon has made what it lies in. */
function makeDirectory(directory: string): void {
  try {
    mkdirSync(directory, { mode: 0o700 });
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code !== "EEXIST") throw thrown;
  }
}
