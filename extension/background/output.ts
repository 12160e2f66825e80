import { closeSync, mkdtempSync, openSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { atExit } from "./at-exit.ts";

/** A text that may be too long for the model: its beginning and end, and where all of it is. */
export interface CappedText {
  readonly text: string;
  /** The file (0600) with the whole text, when something was left out of `text`. */
  readonly file?: string;
}

export interface CappedOutputOptions {
  /** Length of the text that is kept, in UTF-16 units, beside a line about what was left out. */
  readonly maxLength: number;
  /** Where the file is made when one is needed. */
  readonly directory: OutputDirectory;
  /** The file's name. */
  readonly name: string;
}

/** A directory (0700) for whole outputs, made when it is needed and removed when pi ends. */
export class OutputDirectory {
  #path: string | undefined;

  get path(): string {
    this.#path ??= this.#make();
    return this.#path;
  }

  #make(): string {
    const path = mkdtempSync(join(tmpdir(), "pi-rpcd-jobs-"));
    atExit(() => rmSync(path, { recursive: true, force: true }));
    return path;
  }
}

/** Text that comes in pieces. Memory holds no more than its beginning and end, however much there is. */
export class CappedOutput {
  readonly #options: CappedOutputOptions;
  readonly #maxHead: number;
  readonly #maxTail: number;
  #head = "";
  #tail = "";
  #length = 0;
  #file: { readonly path: string; readonly descriptor: number } | undefined;

  constructor(options: CappedOutputOptions) {
    this.#options = options;
    this.#maxHead = options.maxLength >> 2;
    this.#maxTail = options.maxLength - this.#maxHead;
  }

  add(piece: string): void {
    if (this.#file === undefined && this.#length + piece.length > this.#options.maxLength) this.#openFile();
    if (this.#file !== undefined) writeSync(this.#file.descriptor, piece);
    this.#length += piece.length;
    const room = this.#maxHead - this.#head.length;
    if (room > 0) this.#head += piece.slice(0, room);
    this.#tail = (this.#tail + piece.slice(Math.max(0, room))).slice(-this.#maxTail);
  }

  /** What there is so far. */
  get text(): CappedText {
    if (this.#file === undefined) return { text: this.#head + this.#tail };
    const left = this.#length - this.#head.length - this.#tail.length;
    const note = `\n[… ${left} characters are left out here. The whole output is in ${this.#file.path} …]\n`;
    return { text: (this.#head + note + this.#tail).toWellFormed(), file: this.#file.path };
  }

  close(): void {
    if (this.#file !== undefined) closeSync(this.#file.descriptor);
  }

  /** Until now all that came was kept. */
  #openFile(): void {
    const path = join(this.#options.directory.path, this.#options.name);
    const descriptor = openSync(path, "wx", 0o600);
    this.#file = { path, descriptor };
    writeSync(descriptor, this.#head + this.#tail);
  }
}

/** A whole text, capped. */
export function capText(text: string, options: CappedOutputOptions): CappedText {
  const output = new CappedOutput(options);
  try {
    output.add(text);
    return output.text;
  } finally {
    output.close();
  }
}
