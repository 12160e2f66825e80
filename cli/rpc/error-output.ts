import type { Writable } from "node:stream";

/** Above it, nothing more is written until stderr has taken it: a front end may never read it. */
const maxWaitingBytes = 1024 * 1024;

/** Writes what pi writes to stderr. Of a reader that does not read it keeps only so much. */
export class ErrorOutput {
  readonly #stream: Writable;
  #omittedBytes = 0;

  constructor(stream: Writable) {
    this.#stream = stream;
    stream.on("error", () => {});
  }

  /** `omittedBytes`: how many are missing before the text. */
  write(text: string, omittedBytes = 0): void {
    this.#omittedBytes += omittedBytes;
    if (this.#stream.writableLength >= maxWaitingBytes) {
      this.#omittedBytes += Buffer.byteLength(text);
      return;
    }
    if (this.#omittedBytes > 0)
      this.#stream.write(`pi-rpcd: ${this.#omittedBytes} bytes of pi's stderr are omitted here.\n`);
    this.#omittedBytes = 0;
    this.#stream.write(text);
  }
}
