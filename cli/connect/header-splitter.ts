/** The listener for the messages of a byte stream. */
export interface MessageListener {
  /** The bytes of one message, perhaps a view of the chunk: copy them to keep them. */
  onMessage(message: Buffer): void;
  /** A message over the limit was skipped; `bytes` is its length. */
  onOversize(bytes: number): void;
}

export interface MessageReader {
  /** Throws a {@link FramingError} if the rest of the stream cannot be parsed. */
  push(chunk: Buffer): void;
  /** Handles the end of the stream: a last line without a line end is a message. Returns false inside a message. */
  end(): boolean;
}

/** A longer head is an error. */
const maxHeadBytes = 4_096;
const headEnd = Buffer.from("\r\n\r\n");
const empty = Buffer.alloc(0);

/**
 * Splits a stream with a `Content-Length` head before each message, in time linear in its bytes. Other header fields
 * are skipped, except a charset other than UTF-8.
 */
export class HeaderSplitter implements MessageReader {
  readonly #listener: MessageListener;
  readonly #maxMessageBytes: number;
  readonly #broken: (detail: string) => Error;
  /** The received part of a head. */
  #head: Buffer = empty;
  /** The received parts of a body; undefined while a head is awaited. */
  #parts: Buffer[] | undefined;
  /** The number of missing bytes of the body. */
  #missing = 0;
  /** The length of a body that is skipped because it is too long. */
  #skipped: number | undefined;

  constructor(listener: MessageListener, maxMessageBytes: number, broken: (detail: string) => Error) {
    this.#listener = listener;
    this.#maxMessageBytes = maxMessageBytes;
    this.#broken = broken;
  }

  end(): boolean {
    return this.#parts === undefined && this.#head.length === 0;
  }

  push(chunk: Buffer): void {
    let rest = chunk;
    while (rest.length > 0) rest = this.#parts === undefined ? this.#readHead(rest) : this.#readBody(rest);
  }

  /** Both methods return the unused rest of the chunk. */
  #readHead(chunk: Buffer): Buffer {
    const before = this.#head.length;
    // A head is short and its size is bounded, so that scanning it again with each chunk is cheap.
    const head = before === 0 ? chunk : Buffer.concat([this.#head, chunk.subarray(0, maxHeadBytes + headEnd.length)]);
    const end = head.subarray(0, maxHeadBytes + headEnd.length).indexOf(headEnd);
    if (end === -1) {
      if (head.length > maxHeadBytes) throw this.#broken(`A header is longer than ${maxHeadBytes} bytes.`);
      this.#head = before === 0 ? Buffer.from(head) : head;
      return empty;
    }
    this.#head = empty;
    this.#begin(this.#lengthOf(head.toString("latin1", 0, end)));
    return chunk.subarray(end + headEnd.length - before);
  }

  #begin(length: number): void {
    this.#missing = length;
    this.#parts = [];
    this.#skipped = length > this.#maxMessageBytes ? length : undefined;
    if (length === 0) this.#finish();
  }

  #readBody(chunk: Buffer): Buffer {
    const part = chunk.subarray(0, this.#missing);
    if (this.#skipped === undefined) this.#parts?.push(part.length === chunk.length ? part : Buffer.from(part));
    this.#missing -= part.length;
    if (this.#missing === 0) this.#finish();
    return chunk.subarray(part.length);
  }

  #finish(): void {
    const parts = this.#parts ?? [];
    const skipped = this.#skipped;
    this.#parts = undefined;
    this.#skipped = undefined;
    if (skipped !== undefined) this.#listener.onOversize(skipped);
    else this.#listener.onMessage(parts.length === 1 ? (parts[0] as Buffer) : Buffer.concat(parts));
  }

  #lengthOf(head: string): number {
    let length: number | undefined;
    for (const line of head.split("\r\n")) {
      const colon = line.indexOf(":");
      if (colon <= 0) throw this.#broken(`A header has a line without a name: ${JSON.stringify(line.slice(0, 80))}`);
      const name = line.slice(0, colon).trim().toLowerCase();
      const value = line.slice(colon + 1).trim();
      if (name === "content-type" && /charset/i.test(value) && !/charset="?utf-?8"?\s*(?:;|$)/i.test(value)) {
        throw this.#broken(`Messages must be UTF-8, not ${JSON.stringify(value.slice(0, 80))}.`);
      }
      if (name !== "content-length") continue;
      if (length !== undefined || !/^\d{1,15}$/.test(value)) {
        throw this.#broken(
          `A header needs exactly one Content-Length, a whole number: ${JSON.stringify(value.slice(0, 80))}`,
        );
      }
      length = Number(value);
    }
    if (length === undefined) throw this.#broken("A header has no Content-Length.");
    return length;
  }
}
