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
 * Writes a text to the directory, named by its hash, with mode 0600, atomically. An existing file is used again and
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

/** Reads the text with this hash. `undefined`: it is missing or was changed. */
export async function readSpilled(directory: string, { sha256, bytes }: Spilled): Promise<string | undefined> {
  try {
    const path = join(directory, sha256);
    // A longer file was changed.
    if (statSync(path).size !== bytes) return undefined;
    const content = await readFile(path);
    return sumOf(content).sha256 === sha256 ? content.toString("utf8") : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Reads the whole output of a command from the log that pi's tool has named. Accepts only logs with pi's own name and
 * place, because a command can print the name of any file. `undefined`: there is no log, or it is too large.
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

/** The size alone proves nothing: a power loss can leave zeros. */
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

/** Not recursive, because the daemon has made the parent. */
function makeDirectory(directory: string): void {
  try {
    mkdirSync(directory, { mode: 0o700 });
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code !== "EEXIST") throw thrown;
  }
}
