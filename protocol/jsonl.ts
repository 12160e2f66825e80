const LF = 0x0a;
const CR = 0x0d;

export interface JsonlOptions {
  /** A longer record is skipped up to its LF and reported by `onOversize`. */
  readonly maxRecordBytes: number;
  /** One record without its LF (and without one CR before it). May be a view of the chunk: copy it to keep it. */
  readonly onRecord: (record: Buffer) => void;
  /** Called for a record that is too long, with its first bytes and its length. */
  readonly onOversize: (head: Buffer, bytes: number) => void;
}

const headBytes = 256;

/**
 * Strict LF JSONL on bytes, in time linear in their number. Only 0x0A ends a record, so U+2028, U+2029 and characters
 * split between chunks are safe. Empty lines are ignored.
 */
export class JsonlSplitter {
  readonly #options: JsonlOptions;
  #parts: Buffer[] = [];
  #bytes = 0;
  /** The head of a record that is being skipped. */
  #skipped: Buffer | undefined;

  constructor(options: JsonlOptions) {
    this.#options = options;
  }

  push(chunk: Buffer): void {
    let start = 0;
    for (let end = chunk.indexOf(LF); end !== -1; end = chunk.indexOf(LF, start)) {
      this.#finish(start === end ? undefined : chunk.subarray(start, end));
      start = end + 1;
    }
    if (start < chunk.length) this.#keep(start === 0 ? chunk : chunk.subarray(start));
  }

  /** Bytes after the last LF at the end of the stream: an incomplete record. */
  rest(): Buffer | undefined {
    return this.#bytes === 0 ? undefined : (this.#skipped ?? Buffer.concat(this.#parts).subarray(0, headBytes));
  }

  #keep(part: Buffer): void {
    this.#bytes += part.length;
    if (this.#skipped !== undefined) return;
    this.#parts.push(part);
    if (this.#bytes > this.#options.maxRecordBytes) this.#skip();
  }

  #skip(): void {
    const parts = this.#parts;
    this.#parts = [];
    this.#skipped = Buffer.from(Buffer.concat(parts).subarray(0, headBytes));
  }

  #finish(last: Buffer | undefined): void {
    if (this.#bytes === 0) {
      if (last === undefined) return;
      if (last.length <= this.#options.maxRecordBytes) {
        this.#emit(last);
        return;
      }
    }
    if (last !== undefined) this.#keep(last);
    const bytes = this.#bytes;
    const parts = this.#parts;
    const skipped = this.#skipped;
    this.#parts = [];
    this.#bytes = 0;
    this.#skipped = undefined;
    if (skipped !== undefined) this.#options.onOversize(skipped, bytes);
    else this.#emit(parts.length === 1 ? (parts[0] as Buffer) : Buffer.concat(parts, bytes));
  }

  #emit(line: Buffer): void {
    const record = line[line.length - 1] === CR ? line.subarray(0, -1) : line;
    if (record.length > 0) this.#options.onRecord(record);
  }
}
