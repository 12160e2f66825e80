import { closeSync, constants, fsyncSync, openSync, readSync, writeSync } from "node:fs";

const width = 20;
const openFlags = constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW;

/**
 * The number of the newest synced commit, in a file next to the database. SQLite ends a WAL at the first torn frame
 * without reporting later ones; a database with a lower number than this has lost commits. It is written after each
 * synced commit and not synced itself: a power failure can never make the database older than this file, and it costs
 * a few microseconds.
 */
export class CommitMark {
  /** The open file, which another thread of this process may also write. */
  readonly descriptor: number;

  private constructor(descriptor: number) {
    this.descriptor = descriptor;
  }

  /** Creates the file with mode 0600 if it is missing. */
  static open(file: string): CommitMark {
    return new CommitMark(openSync(file, openFlags, 0o600));
  }

  /** The same file for another thread, which does not close it. */
  static of(descriptor: number): CommitMark {
    return new CommitMark(descriptor);
  }

  /** Undefined if it was never written, or cannot be read. */
  read(): number | undefined {
    return this.#at(0);
  }

  /** Whether a version with a log of changes wrote it last: versions without one change only the first line. */
  get isLogged(): boolean {
    const newest = this.#at(0);
    return newest !== undefined && newest === this.#at(width);
  }

  /** Throws errors of the system. */
  write(commits: number): void {
    const line = `${String(commits).padStart(width - 1, "0")}\n`;
    writeSync(this.descriptor, `${line}${line}`, 0, "latin1");
  }

  #at(position: number): number | undefined {
    const bytes = Buffer.alloc(width);
    const length = readSync(this.descriptor, bytes, 0, width, position);
    const text = bytes.toString("latin1", 0, length);
    return /^\d{19}\n$/.test(text) ? Number(text) : undefined;
  }

  close(): void {
    try {
      fsyncSync(this.descriptor);
    } finally {
      closeSync(this.descriptor);
    }
  }
}
