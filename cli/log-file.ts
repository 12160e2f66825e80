import { closeSync, existsSync, openSync, readSync, rmSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { makeDirectory, removeDirectory } from "../server/lib/make-directory.ts";

/** The default log file of a daemon. */
export function defaultLogFile(stateDir: string): string {
  return join(stateDir, "daemon.log");
}

/** A log that is opened before the daemon starts, so that no output of the daemon is lost. */
export class LogFile {
  readonly path: string;
  readonly #descriptor: number;
  readonly #isNew: boolean;
  /** The directories created for it: this one, and those inside it. */
  readonly #madeFolder: string | undefined;

  private constructor(path: string) {
    this.path = path;
    this.#isNew = !existsSync(path);
    this.#madeFolder = makeDirectory(dirname(path), 0o700);
    this.#descriptor = openSync(path, "a", 0o600);
  }

  /** Undefined if the file cannot be opened. */
  static open(path: string): LogFile | undefined {
    try {
      return new LogFile(path);
    } catch {
      return undefined;
    }
  }

  get descriptor(): number {
    return this.#descriptor;
  }

  close(): void {
    closeSync(this.#descriptor);
  }

  /** Removes what {@link open} created, unless it is used. */
  remove(): void {
    if (this.#isNew) rmSync(this.path, { force: true });
    removeDirectory(dirname(this.path), this.#madeFolder);
  }
}

/** The last non-empty lines in a file's last 16 KiB; none if it cannot be read. */
export function lastLines(path: string, count: number): readonly string[] {
  const maxBytes = 16_384;
  let descriptor: number | undefined;
  try {
    descriptor = openSync(path, "r");
    const buffer = Buffer.alloc(maxBytes);
    const from = Math.max(0, statSync(path).size - maxBytes);
    const length = readSync(descriptor, buffer, 0, maxBytes, from);
    const lines = buffer.toString("utf8", 0, length).split("\n");
    return lines.filter((line) => line.trim() !== "").slice(-count);
  } catch {
    return [];
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
}
