import { StringDecoder } from "node:string_decoder";

/** Keeps the end of a text stream, at most `maxBytes` of UTF-8. */
export class TextRing {
  readonly #maxBytes: number;
  readonly #decoder = new StringDecoder("utf8");
  #text = "";

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  push(chunk: Buffer): void {
    this.#text += this.#decoder.write(chunk.length > this.#maxBytes ? chunk.subarray(-this.#maxBytes) : chunk);
    // A UTF-16 unit takes at most three bytes of UTF-8: cut only when the limit could be exceeded, and then by half.
    if (this.#text.length > this.#maxBytes) this.#text = this.#text.slice(-Math.floor(this.#maxBytes / 2));
  }

  /** The last `maxBytes` of the stream. */
  toString(): string {
    const bytes = Buffer.from(this.#text);
    if (bytes.length <= this.#maxBytes) return this.#text;
    // A cut inside a character leaves a replacement character at the start.
    return bytes
      .subarray(-this.#maxBytes)
      .toString("utf8")
      .replace(/^\uFFFD+/, "");
  }
}
