import type { Writable } from "node:stream";

/** The lines of a front end's stdout, in order. A line that is not known yet keeps its place. */
export class OrderedOutput {
  readonly #stream: Writable;
  /** The writing of the last line that waits; undefined: none waits. */
  #last: Promise<void> | undefined;
  #waitingLength = 0;

  constructor(stream: Writable) {
    this.#stream = stream;
  }

  /** About how many bytes the reader has not taken yet. */
  get waitingBytes(): number {
    return this.#stream.writableLength + this.#waitingLength;
  }

  /** Writes a line, without its line feed. `onWritten`: the reader could take it. */
  write(line: string, onWritten?: () => void): void {
    if (this.#last === undefined) this.#stream.write(`${line}\n`, onWritten);
    else {
      this.#waitingLength += line.length;
      const written = this.#last.then(() => {
        this.#waitingLength -= line.length;
        return line;
      });
      this.#after(written, onWritten);
    }
  }

  /** Writes a line when it is known; later lines wait for it. Nothing is written for `undefined`. Must not reject. */
  writeLater(line: Promise<string | undefined>, onWritten?: () => void): void {
    const former = this.#last;
    this.#after(former === undefined ? line : former.then(() => line), onWritten);
  }

  /** Resolves when every line was handed to the stream. */
  async written(): Promise<void> {
    await this.#last;
  }

  #after(line: Promise<string | undefined>, onWritten?: () => void): void {
    const writing = line.then((known) => {
      if (known !== undefined) this.#stream.write(`${known}\n`, onWritten);
      if (this.#last === writing) this.#last = undefined;
    });
    this.#last = writing;
  }
}
