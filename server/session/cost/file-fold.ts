import { type FileHandle, open } from "node:fs/promises";
import { crc32 } from "node:zlib";
import { CostFold } from "../../../protocol/cost/fold.ts";
import { COST_MARK_TYPE } from "../../../protocol/cost/marks.ts";
import { JsonlSplitter } from "../../../protocol/jsonl.ts";

/** A longer entry is passed over; pi reads none into a request that is a hundredth of it. */
const maxEntryBytes = 64 * 1024 * 1024;
const chunkBytes = 256 * 1024;
/** So many bytes before the place are compared, to see whether the file is still the same. */
const tailBytes = 256;

/** What of an entry's line says that it matters. pi writes the names of its fields as they are. */
const telling = ['"usage"', '"context_edit"', '"assistant"', `"${COST_MARK_TYPE}"`].map((text) => Buffer.from(text));
const headBytes = 256;
const timePattern =
  /^\{"type":"[a-z_]{1,64}","id":"[^"\\]{1,128}","parentId":(?:"[^"\\]{1,128}"|null),"timestamp":"([^"\\]{1,64})"/;

interface Place {
  readonly inode: number;
  readonly read: number;
  readonly tailSum: number;
}

/** What a session file says of costs. The file is read once; later only what was added to it. */
export class FileFold {
  readonly #file: string;
  #fold = new CostFold();
  #place: Place | undefined;
  /** One reads at a time, the others see what it has read. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(file: string) {
    this.#file = file;
  }

  /** Where there is no file, nothing was spent. Throws what reading a file can throw, and the signal's reason. */
  read(signal?: AbortSignal): Promise<CostFold> {
    const reading = this.#last.then(() => this.#read(signal));
    this.#last = reading.catch(() => {});
    return reading;
  }

  async #read(signal: AbortSignal | undefined): Promise<CostFold> {
    signal?.throwIfAborted();
    const handle = await open(this.#file, "r").catch((error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") return undefined;
      throw error;
    });
    if (handle === undefined) return this.#forget();
    try {
      const { size, ino: inode } = await handle.stat();
      const place = this.#place;
      const goesOn =
        place !== undefined && place.inode === inode && size >= place.read && (await hasTail(handle, place));
      if (!goesOn) this.#forget();
      const from = goesOn ? place.read : 0;
      if (from === size) return this.#fold;
      // Where it is left in the middle it begins anew.
      this.#place = undefined;
      const read = await this.#take(handle, from, size, signal);
      this.#place = { inode, read, tailSum: await sumBefore(handle, read) };
      return this.#fold;
    } catch (error) {
      this.#forget();
      throw error;
    } finally {
      await handle.close();
    }
  }

  #forget(): CostFold {
    this.#place = undefined;
    this.#fold = new CostFold();
    return this.#fold;
  }

  /** Gives up to where whole entries were read. */
  async #take(handle: FileHandle, from: number, to: number, signal: AbortSignal | undefined): Promise<number> {
    const fold = this.#fold;
    let whole = from;
    let rest: Buffer[] = [];
    const splitter = new JsonlSplitter({
      maxRecordBytes: maxEntryBytes,
      onRecord: (line) => takeLine(fold, line),
      onOversize: () => {},
    });
    for (let at = from; at < to; ) {
      signal?.throwIfAborted();
      const { buffer, bytesRead } = await handle.read(Buffer.alloc(Math.min(chunkBytes, to - at)), 0, undefined, at);
      if (bytesRead === 0) break;
      const chunk = buffer.subarray(0, bytesRead);
      const end = chunk.lastIndexOf(0x0a);
      if (end >= 0) whole = at + end + 1;
      rest = end >= 0 ? [chunk.subarray(end + 1)] : [...rest, chunk];
      at += bytesRead;
      splitter.push(chunk);
    }
    // A last line without an end counts for pi when it is whole. pi then ends it, which is an empty line for us.
    const last = Buffer.concat(rest);
    if (last.length === 0 || last.length > maxEntryBytes || !takeLine(fold, last)) return whole;
    return whole + last.length;
  }
}

/** Gives whether it is an entry. */
function takeLine(fold: CostFold, line: Buffer): boolean {
  const [, time] = timePattern.exec(line.toString("latin1", 0, headBytes)) ?? [];
  if (time !== undefined && line[line.length - 1] === 0x7d && !telling.some((text) => line.includes(text))) {
    fold.pass(time);
    return true;
  }
  try {
    fold.add(JSON.parse(line.toString("utf8")));
    return true;
  } catch {
    // pi passes over a line that is none, too.
    return false;
  }
}

async function hasTail(handle: FileHandle, { read, tailSum }: Place): Promise<boolean> {
  return (await sumBefore(handle, read)) === tailSum;
}

async function sumBefore(handle: FileHandle, end: number): Promise<number> {
  const length = Math.min(end, tailBytes);
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(length), 0, length, end - length);
  return crc32(buffer.subarray(0, bytesRead));
}
