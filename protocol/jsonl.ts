const LF = 0x0a;
const CR = 0x0d;

export interface JsonlOptions {
  /** A longer record is skipped up to its LF and reported by `onOversize`. */
  readonly maxRecordBytes: number;
  /** One record without its LF (and without one CR before it). May be a view of the chunk: copy it to keep it. */
  readonly onRecord: (record: Buffer) => void;
  /** Called for a line without a record. Default: it is ignored. */
  readonly onEmpty?: () => void;
  /** Called instead of `onRecord` for a record in several chunks with at least `largeBytes`. Owns the array. */
  readonly onLarge?: (parts: Buffer[], bytes: number) => void;
  readonly largeBytes?: number;
  /** Called for a record that is too long, with its first bytes and its length. */
  readonly onOversize: (head: Buffer, bytes: number) => void;
}

const headBytes = 256;

/**
 * Strict LF JSONL on bytes, in time linear in their number. Only 0x0A ends a record, so U+2028, U+2029 and characters
 * split between chunks are safe.
 */
export class JsonlSplitter {
  readonly #options: JsonlOptions;
  #parts: Buffer[] = [];
  #bytes = 0;
  /** The head of a record that is being skipped. */
  #skipped: Buffer | undefined;
  #consumed = 0;

  constructor(options: JsonlOptions) {
    this.#options = options;
  }

  /** Bytes up to the end of the newest complete line; within a callback, of its own line. */
  get consumed(): number {
    return this.#consumed;
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
    return this.#bytes === 0 ? undefined : (this.#skipped ?? this.#head());
  }

  #keep(part: Buffer): void {
    this.#bytes += part.length;
    if (this.#skipped !== undefined) return;
    this.#parts.push(part);
    if (this.#bytes > this.#options.maxRecordBytes) this.#skip();
  }

  #skip(): void {
    this.#skipped = this.#head();
    this.#parts = [];
  }

  #head(): Buffer {
    return Buffer.concat(this.#parts, Math.min(this.#bytes, headBytes));
  }

  #finish(last: Buffer | undefined): void {
    this.#consumed += this.#bytes + (last?.length ?? 0) + 1;
    if (this.#bytes === 0) {
      if (last === undefined) {
        this.#options.onEmpty?.();
        return;
      }
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
    const { onLarge, largeBytes = Number.POSITIVE_INFINITY } = this.#options;
    if (skipped !== undefined) this.#options.onOversize(skipped, bytes);
    else if (onLarge !== undefined && bytes >= largeBytes) onLarge(parts, bytes - withoutCr(parts));
    else this.#emit(parts.length === 1 ? (parts[0] as Buffer) : Buffer.concat(parts, bytes));
  }

  #emit(line: Buffer): void {
    const record = line[line.length - 1] === CR ? line.subarray(0, -1) : line;
    if (record.length > 0) this.#options.onRecord(record);
    else this.#options.onEmpty?.();
  }
}

/** Removes a CR from the end of a record. Returns the number of removed bytes. */
function withoutCr(parts: Buffer[]): number {
  const last = parts.at(-1);
  if (last === undefined || last[last.length - 1] !== CR) return 0;
  parts[parts.length - 1] = last.subarray(0, -1);
  return 1;
}
