import { closeSync, fstatSync, openSync, renameSync, writeSync } from "node:fs";

/** A file that is appended to and, when it has reached its bound, renamed to `<path>.1` and begun anew. */
export class RotatingFile {
  readonly #path: string;
  readonly #maxBytes: number;
  #descriptor: number;
  #bytes: number;

  constructor(path: string, maxBytes: number) {
    this.#path = path;
    this.#maxBytes = maxBytes;
    this.#descriptor = openSync(path, "a", 0o600);
    this.#bytes = fstatSync(this.#descriptor).size;
  }

  /** Never throws: a log that cannot be written ends nothing. */
  write(line: string): void {
    try {
      if (this.#bytes >= this.#maxBytes) this.#rotate();
      this.#bytes += writeSync(this.#descriptor, line);
    } catch {
      // A full disk: the line is lost.
    }
  }

  #rotate(): void {
    renameSync(this.#path, `${this.#path}.1`);
    closeSync(this.#descriptor);
    this.#descriptor = openSync(this.#path, "a", 0o600);
    this.#bytes = 0;
  }
}
