import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from "node:fs";
import { crc32 } from "node:zlib";
import type { Parameters } from "./connection.ts";

// The writing thread loads this file: it imports no more than it needs.

/** A line of the log or of the copy. */
export interface ChangeRecord {
  /** The number of the commit; in a copy, of the newest commit that it contains. */
  readonly number: number;
  /** The schema version of the statements. */
  readonly shape: number;
  /** Statements, each with one or more lists of parameters. Empty in the last line of a copy. */
  readonly changes: readonly (readonly [sql: string, ...lists: Parameters[]])[];
}

/** Shared with the writing thread: the open file, whether it is being written, its bytes, and missing lines. */
export type LogState = Int32Array<SharedArrayBuffer>;
const [descriptorAt, busyAt, bytesAt, holesAt, shapeAt, maxBytesAt] = [0, 1, 2, 3, 4, 5] as const;

const appendFlags = constants.O_RDWR | constants.O_CREAT | constants.O_APPEND | constants.O_NOFOLLOW;
const lineFeed = 0x0a;
/** A line feed, the checksum as 8 hexadecimal digits, and a space. */
const headBytes = 10;
const pieceBytes = 1024 * 1024;

/** These tables are not restored: logs of events come back from pi's session files, and the feed begins again. */
const ofOtherTables = /\b(?:INTO|FROM|UPDATE) (?:events|feed)\b/;

/**
 * Text as a line. It begins with the line feed, so that it is readable after a torn line, and has its own checksum and
 * statements, so that a damaged line affects no other.
 */
export function lineOf(json: string): Buffer {
  const line = Buffer.from(`\n00000000 ${json}`);
  line.write(sumOf(line.subarray(headBytes)), 1, "latin1");
  return line;
}

/** The records of a file in order, and undefined for each damaged line. A missing file has none. */
export function* recordsIn(file: string, lastBytes = Number.POSITIVE_INFINITY): Generator<ChangeRecord | undefined> {
  let parts: Buffer[] = [];
  for (const piece of piecesOf(file, lastBytes)) {
    let start = 0;
    for (let end = piece.indexOf(lineFeed); end !== -1; end = piece.indexOf(lineFeed, start)) {
      yield* recordOf([...parts, piece.subarray(start, end)]);
      parts = [];
      start = end + 1;
    }
    parts.push(piece.subarray(start));
  }
  yield* recordOf(parts);
}

/** The file's last bytes, up to this number, in pieces: a copy can be larger than the largest buffer. */
function* piecesOf(file: string, lastBytes: number): Generator<Buffer> {
  let descriptor: number | undefined;
  try {
    descriptor = openSync(file, constants.O_RDONLY | constants.O_NOFOLLOW);
    const { size } = fstatSync(descriptor);
    for (let at = Math.max(0, size - lastBytes); at < size; ) {
      const piece = Buffer.allocUnsafe(Math.min(size - at, pieceBytes));
      const read = readSync(descriptor, piece, 0, piece.length, at);
      if (read === 0) return;
      at += read;
      yield piece.subarray(0, read);
    }
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === "ENOENT") return;
    const why = (cause as Error).message;
    throw new Error(`${file} cannot be read: ${why}. Make it readable; without it, its changes are lost.`, { cause });
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
}

/** The record of a line; none if the line is empty. */
function* recordOf(parts: readonly Buffer[]): Generator<ChangeRecord | undefined> {
  const line = Buffer.concat(parts);
  if (line.length === 0) return;
  const json = line.subarray(headBytes - 1);
  if (line.toString("latin1", 0, headBytes - 1) === `${sumOf(json)} `) {
    const [number, shape, changes] = JSON.parse(json.toString("utf8")) as [number, number, ChangeRecord["changes"]];
    yield { number, shape, changes };
  } else yield undefined;
}

function sumOf(json: Buffer): string {
  return crc32(json).toString(16).padStart(8, "0");
}

/** The database's files with what a damaged one is rebuilt from. */
export function logFiles(path: string): { readonly copy: string; readonly former: string; readonly current: string } {
  const current = `${path.replace(/\.db$/, "")}.changes`;
  return { copy: `${path}.copy`, former: `${current}.former`, current };
}

/** The number of the newest logged commit; 0 if there is none. */
export function newestLogged(path: string): number {
  const { former, current } = logFiles(path);
  for (const file of [current, former]) {
    const size = statSync(file, { throwIfNoEntry: false })?.size ?? 0;
    for (let bytes = 64 * 1024; size > 0; bytes *= 8) {
      let newest = 0;
      for (const record of recordsIn(file, bytes)) newest = Math.max(newest, record?.number ?? 0);
      if (newest > 0) return newest;
      if (bytes >= size) break;
    }
  }
  return 0;
}

/** Appends to the log, in the thread that writes the database. */
export class LogAppender {
  readonly #state: LogState;
  readonly #isLogged = new Map<string, boolean>();

  constructor(state: LogState) {
    this.#state = state;
  }

  /** Throws the first error after a success or a copy, with the text that the changes are not logged. */
  append(number: number, changes: readonly { readonly sql: string; readonly parameters: Parameters }[]): void {
    const state = this.#state;
    Atomics.store(state, busyAt, 1);
    try {
      const limit = Atomics.load(state, maxBytesAt);
      if (Atomics.load(state, bytesAt) >= limit) throw new Error(`It has ${limit} bytes, its limit`);
      const logged = changes.flatMap(({ sql, parameters }) => (this.#concerns(sql) ? [[sql, parameters]] : []));
      const line = lineOf(JSON.stringify([number, Atomics.load(state, shapeAt), logged]));
      const written = writeSync(Atomics.load(state, descriptorAt), line);
      Atomics.add(state, bytesAt, written);
      if (written < line.length) throw new Error(`Of ${line.length} bytes ${written} were written`);
    } catch (cause) {
      if (Atomics.add(state, holesAt, 1) > 0) return;
      const why = (cause as Error).message;
      throw new Error(
        `The log of the store's changes cannot be written: ${why}. If the store is damaged before its next copy, changes since the last one are lost.`,
        { cause },
      );
    } finally {
      Atomics.store(state, busyAt, 0);
    }
  }

  #concerns(sql: string): boolean {
    const known = this.#isLogged.get(sql);
    if (known !== undefined) return known;
    const concerns = !ofOtherTables.test(sql);
    this.#isLogged.set(sql, concerns);
    return concerns;
  }
}

/**
 * The log of changes: a line for each transaction, written after its commit and not synced. A damaged database is
 * rebuilt from its copy and this log. A copy begins a new file; the former one stays until the copy is complete.
 */
export class ChangeLog {
  readonly state: LogState = new Int32Array(new SharedArrayBuffer(24));
  readonly #files;
  /** A replaced file that the writing thread may still be writing. */
  #replaced: number | undefined;

  /** Opens the file, with mode 0600. Beyond `maxBytes` nothing is appended. Throws errors of the system. */
  constructor(path: string, shape: number, maxBytes: number) {
    this.#files = logFiles(path);
    this.state[descriptorAt] = openSync(this.#files.current, appendFlags, 0o600);
    this.state[shapeAt] = shape;
    this.state[maxBytesAt] = maxBytes;
    this.state[bytesAt] = sizeOf(this.#files.current) + sizeOf(this.#files.former);
  }

  /** Deletes the log and the copy of another history of the database. */
  static forget(path: string): void {
    for (const file of Object.values(logFiles(path))) rmSync(file, { force: true });
  }

  get bytes(): number {
    return Atomics.load(this.state, bytesAt);
  }

  /** Number of transactions that were not logged since the last copy. */
  get holes(): number {
    return Atomics.load(this.state, holesAt);
  }

  /**
   * Begins a new file, so that the current one has only commits that a copy made after this call contains. If an
   * earlier copy failed, its former file is still needed, and both files stay. Returns a function to call when the
   * copy is complete.
   */
  turn(): () => void {
    const { former, current } = this.#files;
    this.#closeReplaced();
    const { holes } = this;
    // After a failure between the two renames, the former file is still in use.
    if (!existsSync(current) && existsSync(former)) renameSync(former, current);
    if (sizeOf(former) === 0) {
      const next = openSync(`${current}.new`, appendFlags | constants.O_TRUNC, 0o600);
      try {
        renameSync(current, former);
        renameSync(`${current}.new`, current);
      } catch (error) {
        closeSync(next);
        throw error;
      }
      this.#replaced = Atomics.exchange(this.state, descriptorAt, next);
    }
    return () => {
      rmSync(former, { force: true });
      Atomics.sub(this.state, holesAt, holes);
      Atomics.store(this.state, bytesAt, sizeOf(current));
      this.#closeReplaced();
    };
  }

  /** Nothing is appended any more. */
  close(): void {
    this.#closeReplaced();
    closeSync(Atomics.load(this.state, descriptorAt));
  }

  /** Not while it is written: its number could become another file's. A later append takes the new number. */
  #closeReplaced(): void {
    if (this.#replaced === undefined || Atomics.load(this.state, busyAt) === 1) return;
    closeSync(this.#replaced);
    this.#replaced = undefined;
  }
}

function sizeOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0;
}
