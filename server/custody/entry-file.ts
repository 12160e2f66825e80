import type { Stats } from "node:fs";
import { crc32 } from "node:zlib";
import { limits } from "../configuration/limits.ts";
import { Slices } from "../lib/slices.ts";
import { checkFile } from "../pi/lease.ts";
import { type OpenFile, openSessionFile, unusable } from "../pi/open-file.ts";
import type { SessionFileOwner } from "../pi/session-paths.ts";
import { headerIn, maxHeaderBytes, newestVersion } from "../pi/stored-header.ts";

const { maxEntryLineBytes } = limits.transcript;
const firstChunkBytes = 64 * 1024;
const chunkBytes = 256 * 1024;
/** Bytes before a place that identify it. */
const markBytes = 256;
/** Of a line that is too long, the bytes at its ends that are read. */
const edgeBytes = 4_096;
const newline = 0x0a;

/** A line of a file, without its line feed. */
export interface Line {
  readonly start: number;
  readonly end: number;
  /** Undefined: the line is too long to be read whole. */
  readonly bytes: Buffer | undefined;
  /** The whole line, or the ends of one that is too long. */
  readonly head: Buffer;
  readonly tail: Buffer;
}

/** How many bytes of a file may still be read. */
export interface ReadBudget {
  left: number;
}

/** A session file that is read in parts. */
export class EntryFile {
  readonly path: string;
  readonly inode: number;
  /** Its size when it was opened. Later additions are not read. */
  readonly size: number;
  /** The file of the session from which it was made. */
  parent: string | undefined;
  readonly #handle: OpenFile;
  readonly #budget: ReadBudget;

  private constructor(path: string, handle: OpenFile, found: Stats, budget: ReadBudget) {
    this.path = path;
    this.#handle = handle;
    this.#budget = budget;
    this.inode = found.ino;
    this.size = found.size;
  }

  /**
   * Opens the file of a session. Returns the reason if only pi can read it. Throws `session_file_unusable`, also if the
   * path leads to another session's file. `open`: `openInThread` in a thread that can be ended.
   */
  static async open(
    { file, sessionId }: SessionFileOwner,
    budget: ReadBudget,
    open: (file: string) => Promise<OpenFile> = openSessionFile,
  ): Promise<EntryFile | "missing" | "file_older_form"> {
    checkFile(file);
    const handle = await open(file).catch((error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") return undefined;
      throw error;
    });
    if (handle === undefined) return "missing";
    let opened: EntryFile | undefined;
    try {
      const found = new EntryFile(file, handle, await handle.stat(), budget);
      if (found.size === 0) return "missing";
      // Of the opened file, because the path may lead to another one by now.
      const head = await found.#bytes(0, Math.min(found.size, maxHeaderBytes));
      const { id, version, parent } = headerIn(file, head.toString("utf8").split("\n", 1)[0] ?? "");
      if (id !== sessionId) throw unusable(file, "other_session", `belongs to the session ${id}`);
      if (version !== newestVersion) return "file_older_form";
      found.parent = parent;
      opened = found;
      return found;
    } finally {
      if (opened === undefined) await handle.close();
    }
  }

  /** Bytes that may still be read. */
  get left(): number {
    return this.#budget.left;
  }

  async read(start: number, end: number): Promise<Buffer> {
    if (end - start > this.left) throw new RangeError(`${end - start} bytes are more than may be read`);
    this.#budget.left -= end - start;
    return await this.#bytes(start, end);
  }

  /** Identifies the file up to a place. It changes if the file is rewritten. */
  async markAt(place: number): Promise<number> {
    return crc32(await this.#bytes(Math.max(0, place - markBytes), place));
  }

  /** Does not count as read: the header, and marks. */
  async #bytes(start: number, end: number): Promise<Buffer> {
    const bytes = Buffer.allocUnsafe(end - start);
    let filled = 0;
    while (filled < bytes.length) {
      const { bytesRead } = await this.#handle.read(bytes, filled, bytes.length - filled, start + filled);
      // The file was shortened.
      if (bytesRead === 0) break;
      filled += bytesRead;
    }
    return bytes.subarray(0, filled);
  }

  async close(): Promise<void> {
    await this.#handle.close();
  }
}

/** Where lines are read backwards from. `at` is less than `end` within a line that is too long to be read whole. */
export interface LinePlace {
  readonly at: number;
  /** The end of the next line. */
  readonly end: number;
}

/** The lines of a file, from a place backwards. */
export class LinesBackwards {
  readonly #file: EntryFile;
  #end: number;
  /** What was read before the end of the next line, and where it begins in the file. */
  #window: Buffer = Buffer.alloc(0);
  #windowStart: number;
  /** The later parts of the next line, the first one first. */
  #parts: Buffer[] = [];
  #partBytes = 0;
  #isLong: boolean;
  #isOver = false;
  #chunk = firstChunkBytes;
  readonly #slices = new Slices();

  constructor(file: EntryFile, { at, end }: LinePlace) {
    this.#file = file;
    this.#windowStart = at;
    this.#end = end;
    this.#isLong = at < end;
  }

  /** Where another reader goes on. */
  get place(): LinePlace {
    const at = this.#isLong ? this.#windowStart + this.#window.length : this.#end;
    return { at, end: this.#end };
  }

  /** Skips the lines after an earlier place, the end of a line. */
  skipTo(end: number): void {
    if (end >= this.#windowStart || this.#isLong) return;
    this.#window = Buffer.alloc(0);
    this.#windowStart = end;
    this.#end = end;
    this.#parts = [];
    this.#partBytes = 0;
  }

  /** `start`: there are no earlier lines. `unread`: no more of the file may be read. */
  async next(): Promise<Line | "start" | "unread"> {
    await this.#slices.next();
    for (;;) {
      const found = this.#window.lastIndexOf(newline);
      if (found !== -1) {
        const start = this.#windowStart + found + 1;
        const line = await this.#lineFrom(start, this.#window.subarray(found + 1));
        if (line === "unread") return line;
        this.#window = this.#window.subarray(0, found);
        this.#end = start - 1;
        return line;
      }
      if (this.#windowStart === 0) {
        if (this.#isOver) return "start";
        const line = await this.#lineFrom(0, this.#window);
        if (line !== "unread") this.#isOver = true;
        return line;
      }
      this.#keep(this.#window);
      const start = Math.max(0, this.#windowStart - this.#chunk);
      this.#window = this.#window.subarray(0, 0);
      if (this.#windowStart - start > this.#file.left) return "unread";
      this.#window = await this.#file.read(start, this.#windowStart);
      this.#windowStart = start;
      this.#chunk = chunkBytes;
    }
  }

  #keep(part: Buffer): void {
    if (this.#isLong || part.length === 0) return;
    this.#parts.unshift(part);
    this.#partBytes += part.length;
    if (this.#partBytes <= maxEntryLineBytes) return;
    this.#isLong = true;
    this.#parts = [];
  }

  async #lineFrom(start: number, first: Buffer): Promise<Line | "unread"> {
    const end = this.#end;
    this.#keep(first);
    if (this.#isLong) {
      if (this.#file.left < 2 * edgeBytes) return "unread";
      // By a place that a client has changed, a short line is a long one.
      const head = await this.#file.read(start, Math.min(end, start + edgeBytes));
      const tail = await this.#file.read(Math.max(start, end - edgeBytes), end);
      this.#begin();
      return { start, end, bytes: undefined, head, tail };
    }
    const bytes = this.#parts.length === 1 ? (this.#parts[0] as Buffer) : Buffer.concat(this.#parts);
    this.#begin();
    return { start, end, bytes, head: bytes, tail: bytes };
  }

  #begin(): void {
    this.#parts = [];
    this.#partBytes = 0;
    this.#isLong = false;
  }
}
