import { closeSync, mkdtempSync, openSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { atExit } from "./at-exit.ts";

/** Beginning and end of a text that may be too long for the model, and the file with the full text. */
export interface CappedText {
  readonly text: string;
  /** File (mode 0600) with the full text, if `text` is shortened. */
  readonly file?: string;
}

export interface CappedOutputOptions {
  /** Length of the kept text in UTF-16 units, not counting the line about the omission. */
  readonly maxLength: number;
  /** Directory of the file, if one is needed. */
  readonly directory: OutputDirectory;
  /** File name. */
  readonly name: string;
}

/** Directory (mode 0700) for full outputs, created on demand and removed when pi exits. */
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

/** Collects text in pieces. Memory holds only the beginning and the end, regardless of length. */
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

  /** Text so far. */
  get text(): CappedText {
    if (this.#file === undefined) return { text: this.#head + this.#tail };
    const left = this.#length - this.#head.length - this.#tail.length;
    const note = `\n[… ${left} characters are left out here. The whole output is in ${this.#file.path} …]\n`;
    return { text: (this.#head + note + this.#tail).toWellFormed(), file: this.#file.path };
  }

  close(): void {
    if (this.#file !== undefined) closeSync(this.#file.descriptor);
  }

  /** Called before any text is dropped, so the file starts complete. */
  #openFile(): void {
    const path = join(this.#options.directory.path, this.#options.name);
    const descriptor = openSync(path, "wx", 0o600);
    this.#file = { path, descriptor };
    writeSync(descriptor, this.#head + this.#tail);
  }
}

/** Shortens a complete text. */
export function capText(text: string, options: CappedOutputOptions): CappedText {
  const output = new CappedOutput(options);
  try {
    output.add(text);
    return output.text;
  } finally {
    output.close();
  }
}
