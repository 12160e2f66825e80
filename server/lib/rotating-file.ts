import { closeSync, existsSync, fstatSync, ftruncateSync, openSync, renameSync, rmSync, writeSync } from "node:fs";

/**
 * An append-only file that is renamed to `<path>.1` at its size limit, and started again. If that fails, the old file
 * grows up to twice the limit; beyond that, and on a full disk, lines are lost and counted.
 */
export class RotatingFile {
  readonly #path: string;
  readonly #maxBytes: number;
  #descriptor: number;
  #bytes: number;
  /** Size at which the next rotation is tried. */
  #rotateAt: number;
  /** The file ends with an incomplete line that could not be removed. */
  #isTorn = false;
  #lost = 0;

  constructor(path: string, maxBytes: number) {
    this.#path = path;
    this.#maxBytes = maxBytes;
    this.#rotateAt = maxBytes;
    this.#descriptor = openSync(path, "a", 0o600);
    this.#bytes = fstatSync(this.#descriptor).size;
  }

  /** Number of lost lines. */
  get lost(): number {
    return this.#lost;
  }

  /** Never throws: a failing log must not end the daemon. */
  write(line: string): void {
    if (this.#bytes >= this.#rotateAt) this.#rotate();
    if (this.#bytes >= 2 * this.#maxBytes || !this.#append(Buffer.from(this.#isTorn ? `\n${line}` : line))) {
      this.#lost += 1;
    }
  }

  /** Whether the complete line is in the file. A partial line is removed, because it would corrupt the next one. */
  #append(line: Buffer): boolean {
    let written = 0;
    try {
      while (written < line.length) written += writeSync(this.#descriptor, line, written);
      this.#isTorn = false;
      return true;
    } catch {
      if (written > 0) this.#isTorn = !this.#removePartialLine(written);
      if (!this.#isTorn) written = 0;
      return false;
    } finally {
      this.#bytes += written;
    }
  }

  #removePartialLine(bytes: number): boolean {
    try {
      ftruncateSync(this.#descriptor, fstatSync(this.#descriptor).size - bytes);
      return true;
    } catch {
      return false;
    }
  }

  /** The new file is created before the old one is closed. */
  #rotate(): void {
    const next = `${this.#path}.next`;
    let opened: number | undefined;
    try {
      rmSync(next, { force: true });
      // Never follows a link, or opens another user's file.
      opened = openSync(next, "ax", 0o600);
      // Another process may have removed it.
      if (existsSync(this.#path)) renameSync(this.#path, `${this.#path}.1`);
      renameSync(next, this.#path);
    } catch {
      this.#keepCurrentFile(next, opened);
      return;
    }
    const old = this.#descriptor;
    this.#descriptor = opened;
    this.#bytes = 0;
    this.#rotateAt = this.#maxBytes;
    this.#isTorn = false;
    close(old);
  }

  #keepCurrentFile(next: string, opened: number | undefined): void {
    this.#rotateAt = Math.min(this.#bytes + Math.ceil(this.#maxBytes / 16), 2 * this.#maxBytes);
    if (opened === undefined) return;
    close(opened);
    try {
      rmSync(next, { force: true });
    } catch {
      // The next attempt removes it.
    }
  }
}

function close(descriptor: number): void {
  try {
    closeSync(descriptor);
  } catch {
    // It is closed in any case.
  }
}
