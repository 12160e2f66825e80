import { closeSync, existsSync, fstatSync, ftruncateSync, openSync, renameSync, rmSync, writeSync } from "node:fs";

/**
 * A file that is appended to and, when it has reached its bound, renamed to `<path>.1` and begun anew. Where that cannot
 * be, the old file goes on, up to twice the bound; beyond, and on a full disk, lines are lost and counted.
 */
export class RotatingFile {
  readonly #path: string;
  readonly #maxBytes: number;
  #descriptor: number;
  #bytes: number;
  /** From how many bytes on another file is tried. */
  #rotateAt: number;
  /** A part of a line stands at the end, and could not be taken back. */
  #isTorn = false;
  #lost = 0;

  constructor(path: string, maxBytes: number) {
    this.#path = path;
    this.#maxBytes = maxBytes;
    this.#rotateAt = maxBytes;
    this.#descriptor = openSync(path, "a", 0o600);
    this.#bytes = fstatSync(this.#descriptor).size;
  }

  /** How many lines could not be written. */
  get lost(): number {
    return this.#lost;
  }

  /** Never throws: a log that cannot be written ends nothing. */
  write(line: string): void {
    if (this.#bytes >= this.#rotateAt) this.#rotate();
    if (this.#bytes >= 2 * this.#maxBytes || !this.#append(Buffer.from(this.#isTorn ? `\n${line}` : line))) {
      this.#lost += 1;
    }
  }

  /** Whether the whole line is in the file. What is there of another is taken back: half a line would spoil the next. */
  #append(line: Buffer): boolean {
    let written = 0;
    try {
      while (written < line.length) written += writeSync(this.#descriptor, line, written);
      this.#isTorn = false;
      return true;
    } catch {
      if (written > 0) this.#isTorn = !this.#takeBack(written);
      if (!this.#isTorn) written = 0;
      return false;
    } finally {
      this.#bytes += written;
    }
  }

  #takeBack(bytes: number): boolean {
    try {
      ftruncateSync(this.#descriptor, fstatSync(this.#descriptor).size - bytes);
      return true;
    } catch {
      return false;
    }
  }

  /** The new file is there before the old one is let go. */
  #rotate(): void {
    const next = `${this.#path}.next`;
    let opened: number | undefined;
    try {
      rmSync(next, { force: true });
      // Never another's file, whatever stands in its place.
      opened = openSync(next, "ax", 0o600);
      // Somebody may have taken it away.
      if (existsSync(this.#path)) renameSync(this.#path, `${this.#path}.1`);
      renameSync(next, this.#path);
    } catch {
      this.#stay(next, opened);
      return;
    }
    const old = this.#descriptor;
    this.#descriptor = opened;
    this.#bytes = 0;
    this.#rotateAt = this.#maxBytes;
    this.#isTorn = false;
    close(old);
  }

  #stay(next: string, opened: number | undefined): void {
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
    // It is closed all the same.
  }
}
