import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { crc32 } from "node:zlib";
import { CostFold } from "../../../context/cost/fold.ts";
import { COST_MARK_TYPE } from "../../../context/cost/marks.ts";
import { RequestList } from "../../../context/cost/request-list.ts";
import { JsonlSplitter } from "../../../protocol/jsonl.ts";
import { unusable } from "../../pi/open-file.ts";

/** A longer entry is ignored without reading it as a whole, because other programs may write files of any size. */
const maxEntryBytes = 4 * 1024 * 1024;
/** A larger file is not read. */
export const maxFileBytes = 1024 * 1024 * 1024;
const chunkBytes = 256 * 1024;
/** This many bytes before the position are compared to detect a changed file. */
const tailBytes = 256;

/** Markers of relevant entries. pi writes field names unescaped. */
const telling = ['"usage"', '"context_edit"', '"assistant"', `"${COST_MARK_TYPE}"`].map((text) => Buffer.from(text));
const headBytes = 256;
const timePattern =
  /^\{"type":"[a-z_]{1,64}","id":"[^"\\]{1,128}","parentId":(?:"[^"\\]{1,128}"|null),"timestamp":"([^"\\]{1,64})"/;

/** How far a file was read. */
export interface FilePlace {
  readonly inode: number;
  readonly read: number;
  readonly tailSum: number;
  /** The position is inside an entry that is too long and has not ended. */
  readonly isWithin: boolean;
  /** Nothing complete comes after the position. */
  readonly isAtEnd: boolean;
}

interface FileFoldOptions<F> {
  /** Where an earlier fold of the file ended. Default: the file's beginning. */
  readonly from?: { readonly fold: F; readonly place: FilePlace } | undefined;
  /** What one read takes at most. Default: the whole file. */
  readonly maxBytes?: number;
}

/** A part of a file, in bytes. */
interface Part {
  readonly from: number;
  readonly to: number;
  /** It begins inside an entry that is too long. */
  readonly isWithin: boolean;
  readonly isToEnd: boolean;
}

/** What becomes of the entries of a file. */
interface Fold {
  /** Takes the next entry, which is untrusted. */
  add(entry: unknown): void;
  /** Passes an entry without costs, with its time. */
  pass(time: string | undefined): void;
}

/** What the entries of a session say about its costs. */
export class EntryFold implements Fold {
  readonly costs = new CostFold();
  readonly requests = new RequestList();

  add(entry: unknown): void {
    this.costs.add(entry);
    this.requests.add(entry);
  }

  pass(time: string | undefined): void {
    this.costs.pass(time);
  }
}

/** The costs in a session file. The file is read once; later only its additions. */
export class FileFold<F extends Fold> {
  readonly #file: string;
  readonly #begin: () => F;
  readonly #maxBytes: number;
  #fold: F;
  #place: FilePlace | undefined;
  /** One caller reads at a time; the others share the result. */
  #last: Promise<unknown> = Promise.resolve();

  /** `begin` makes the fold of an empty file. */
  constructor(file: string, begin: () => F, { from, maxBytes = maxFileBytes }: FileFoldOptions<F> = {}) {
    this.#file = file;
    this.#begin = begin;
    this.#maxBytes = maxBytes;
    this.#fold = from?.fold ?? begin();
    this.#place = from?.place;
  }

  /** How far it has read. Undefined: there was no file, or reading it failed. */
  get place(): FilePlace | undefined {
    return this.#place;
  }

  /**
   * Without a file, the costs are zero. Throws `session_file_unusable` for something else than a file, or above 1
   * GiB; errors of reading a file, and the signal's reason.
   */
  read(signal?: AbortSignal): Promise<F> {
    const reading = this.#last.then(() => this.#read(signal));
    this.#last = reading.catch(() => {});
    return reading;
  }

  async #read(signal: AbortSignal | undefined): Promise<F> {
    signal?.throwIfAborted();
    // Does not wait for a pipe.
    const handle = await open(this.#file, constants.O_RDONLY | constants.O_NONBLOCK).catch(
      (error: NodeJS.ErrnoException) => {
        if (error.code === "ENOENT") return undefined;
        throw error;
      },
    );
    if (handle === undefined) return this.#forget();
    try {
      const found = await handle.stat();
      if (!found.isFile()) throw unusable(this.#file, "not_a_file", "is not a regular file");
      const { size, ino: inode } = found;
      if (size > maxFileBytes) throw unusable(this.#file, "unreadable", `is larger than ${maxFileBytes} bytes`);
      const place = this.#place;
      const continues =
        place !== undefined && place.inode === inode && size >= place.read && (await hasTail(handle, place));
      if (!continues) this.#forget();
      const from = continues ? place.read : 0;
      if (continues && from === size) {
        this.#place = { ...place, isAtEnd: true };
        return this.#fold;
      }
      // An aborted read starts from the beginning again.
      this.#place = undefined;
      const isWithin = continues && place.isWithin;
      const to = Math.min(size, from + this.#maxBytes);
      const taken = await this.#take(handle, { from, to, isWithin, isToEnd: to === size }, signal);
      this.#place = { inode, ...taken, tailSum: await sumBefore(handle, taken.read) };
      return this.#fold;
    } catch (error) {
      this.#forget();
      throw error;
    } finally {
      await handle.close();
    }
  }

  #forget(): F {
    this.#place = undefined;
    this.#fold = this.#begin();
    return this.#fold;
  }

  /** Returns the position after the last complete entry, or inside an entry that is too long. */
  async #take(
    handle: FileHandle,
    { from, to, isWithin, isToEnd }: Part,
    signal: AbortSignal | undefined,
  ): Promise<Pick<FilePlace, "read" | "isWithin" | "isAtEnd">> {
    const fold = this.#fold;
    let whole = from;
    let rest: Buffer[] = [];
    let restBytes = 0;
    let isSkipping = isWithin;
    const splitter = new JsonlSplitter({
      maxRecordBytes: maxEntryBytes,
      onRecord: (line) => takeLine(fold, line),
      onOversize: (head) => fold.pass(timeOf(head)),
    });
    for (let at = from; at < to; ) {
      signal?.throwIfAborted();
      const { buffer, bytesRead } = await handle.read(Buffer.alloc(Math.min(chunkBytes, to - at)), 0, undefined, at);
      if (bytesRead === 0) break;
      let chunk = buffer.subarray(0, bytesRead);
      at += bytesRead;
      if (isSkipping) {
        const end = chunk.indexOf(0x0a);
        whole = end < 0 ? at : at - bytesRead + end + 1;
        if (end < 0) continue;
        isSkipping = false;
        chunk = chunk.subarray(end + 1);
      }
      const end = chunk.lastIndexOf(0x0a);
      if (end >= 0) {
        whole = at - chunk.length + end + 1;
        rest = [];
        restBytes = 0;
      }
      const further = end >= 0 ? chunk.subarray(end + 1) : chunk;
      restBytes += further.length;
      if (restBytes > maxEntryBytes) rest = [];
      else rest.push(further);
      splitter.push(chunk);
    }
    if (restBytes > maxEntryBytes) return { read: whole + restBytes, isWithin: true, isAtEnd: isToEnd };
    if (!isToEnd) return { read: whole, isWithin: isSkipping, isAtEnd: false };
    // pi accepts a complete last line without a line break. It adds the break later, which appears as an empty line
    // here.
    const last = Buffer.concat(rest);
    if (last.length === 0 || !takeLine(fold, last)) return { read: whole, isWithin: isSkipping, isAtEnd: true };
    return { read: whole + last.length, isWithin: false, isAtEnd: true };
  }
}

/** Returns whether it is an entry. */
function takeLine(fold: Fold, line: Buffer): boolean {
  const time = timeOf(line);
  if (time !== undefined && line[line.length - 1] === 0x7d && !telling.some((text) => line.includes(text))) {
    fold.pass(time);
    return true;
  }
  try {
    fold.add(JSON.parse(line.toString("utf8")));
    return true;
  } catch {
    // pi skips invalid lines, too.
    return false;
  }
}

function timeOf(line: Buffer): string | undefined {
  return timePattern.exec(line.toString("latin1", 0, headBytes))?.[1];
}

async function hasTail(handle: FileHandle, { read, tailSum }: FilePlace): Promise<boolean> {
  return (await sumBefore(handle, read)) === tailSum;
}

async function sumBefore(handle: FileHandle, end: number): Promise<number> {
  const length = Math.min(end, tailBytes);
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(length), 0, length, end - length);
  return crc32(buffer.subarray(0, bytesRead));
}
