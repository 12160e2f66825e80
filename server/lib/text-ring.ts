import { StringDecoder } from "node:string_decoder";

/** Keeps the end of a text stream, at most `maxBytes` of UTF-8. */
export class TextRing {
  readonly #maxBytes: number;
  #bytes = Buffer.alloc(0);
  /** Bytes of the whole stream. */
  size = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  push(chunk: Buffer): void {
    this.size += chunk.length;
    this.#bytes = Buffer.concat([this.#bytes, chunk]).subarray(-this.#maxBytes);
  }

  /** Returns the newest kept bytes, at most `maxBytes`, of those that came after the first `from` bytes of the stream. */
  after(from: number, maxBytes: number): Buffer {
    const wanted = Math.min(Math.max(0, this.size - from), maxBytes, this.#bytes.length);
    return this.#bytes.subarray(this.#bytes.length - wanted);
  }

  /** The last `maxBytes` of the stream. */
  toString(): string {
    const text = new StringDecoder("utf8").write(this.#bytes);
    // A cut inside a character leaves a replacement character at the start.
    return this.size > this.#bytes.length ? text.replace(/^\uFFFD+/, "") : text;
  }
}
