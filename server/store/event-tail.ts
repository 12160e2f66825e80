import { closeSync, constants, openSync, readdirSync, readFileSync, rmSync, writevSync } from "node:fs";
import { unlink, writeFile } from "node:fs/promises";
import { join } from "node:path";

/** An event that was sent and may not be stored. It covers all numbers from `from` to its own. */
export interface TailedEvent {
  readonly sessionId: string;
  /** The epoch of its log: an earlier session with the same id had another. */
  readonly epoch: string;
  readonly from: number;
  readonly seq: number;
  readonly frame: Buffer;
}

/** The part written up to a moment. */
export interface SealedTail {
  /** All of it is in the store. Never throws: the next daemon ignores files that cannot be removed. */
  remove(): void;
}

/** A large record that was written before its event. */
export interface StagedBody {
  readonly file: string;
  readonly bytes: number;
  readonly number: number;
}

const name = /^events-(\d+)\.tail$/;
/** Large records, each in a file of its own. */
const bodyName = /^events-(\d+)\.body$/;
const openFlags = constants.O_WRONLY | constants.O_CREAT | constants.O_APPEND | constants.O_NOFOLLOW;
const lineFeed = Buffer.from("\n");

/**
 * Events that were sent and are not stored yet, in files that are written before the events are sent, and never
 * synced: the system keeps them when the daemon is killed.
 */
export class EventTail {
  readonly #directory: string;
  readonly #onFailure: (error: unknown) => void;
  #descriptor: number | undefined;
  #file = "";
  #number: number;
  /** The large records of the newest file. */
  #bodies: StagedBody[] = [];
  #hasFailed = false;
  readonly #maxBytes: number;
  /** Bytes in this daemon's files, and in the newest of them. */
  #bytes = 0;
  #fileBytes = 0;
  #isFull = false;

  /**
   * Beyond `maxBytes` nothing is written until something is removed: a killed daemon loses these events, as a gap.
   */
  constructor(directory: string, onFailure: (error: unknown) => void, maxBytes: number) {
    this.#directory = directory;
    this.#onFailure = onFailure;
    this.#maxBytes = maxBytes;
    this.#number = Math.max(0, ...numbersIn(directory), ...numbersIn(directory, bodyName)) + 1;
  }

  /** The events of an earlier daemon, in order. Other bytes, such as a torn end, are skipped. */
  static *left(directory: string): Generator<TailedEvent, void> {
    for (const number of numbersIn(directory)) {
      const bytes = readFileSync(fileOf(directory, number));
      let start = 0;
      for (let end = bytes.indexOf(0x0a); end !== -1; end = bytes.indexOf(0x0a, start)) {
        const event = parsed(bytes.subarray(start, end), directory);
        if (event !== undefined) yield event;
        start = end + 1;
      }
    }
  }

  /** Deletes the files of an earlier daemon. */
  static clear(directory: string): void {
    for (const number of numbersIn(directory)) rmSync(fileOf(directory, number), { force: true });
    for (const number of numbersIn(directory, bodyName)) rmSync(bodyFileOf(directory, number), { force: true });
  }

  /** Whether half of it is used. */
  get isCrowded(): boolean {
    return this.#bytes > this.#maxBytes / 2;
  }

  /**
   * Writes a large record without blocking the event loop, before the event that contains it. Never rejects. Undefined:
   * it was not written.
   */
  async stage(body: Buffer): Promise<StagedBody | undefined> {
    if (this.#isFullFor(body.length)) return undefined;
    const number = this.#number;
    this.#number += 1;
    const staged = { file: bodyFileOf(this.#directory, number), bytes: body.length, number };
    this.#bytes += body.length;
    try {
      await writeFile(staged.file, body, { flag: "wx", mode: 0o600 });
      return staged;
    } catch (error) {
      this.#onFailure(error);
      this.discard(staged);
      return undefined;
    }
  }

  /** Removes a large record that is part of no event. */
  discard({ file, bytes }: StagedBody): void {
    this.#bytes -= bytes;
    this.#isFull = false;
    unlink(file).catch(this.#onFailure);
  }

  /**
   * Writes a frame of a log. Never throws: an unwritten frame is lost only if the daemon is killed before it is
   * stored. Returns whether it was written.
   */
  append(epoch: string, from: number, frame: Buffer, staged?: StagedBody): boolean {
    // The line of a staged record has everything before it and its file's number, and an end: a torn number is another.
    const line = staged === undefined ? frame : Buffer.from(`${headOf(frame, staged)}${staged.number}.`, "latin1");
    if (this.#isFullFor(line.length)) {
      if (staged !== undefined) this.discard(staged);
      return false;
    }
    try {
      // Also if nothing can be opened: it is removed with the next file.
      if (staged !== undefined) this.#bodies.push(staged);
      this.#descriptor ??= this.#open();
      // Ends a partial line of a failed write.
      const head = Buffer.from(`${this.#hasFailed ? "\n" : ""}${epoch} ${from} `, "latin1");
      const length = head.length + line.length + lineFeed.length;
      const written = writevSync(this.#descriptor, [head, line, lineFeed]);
      this.#bytes += written;
      this.#fileBytes += written;
      if (written < length) throw new Error(`Of ${length} bytes ${written} were written.`);
      this.#hasFailed = false;
      return true;
    } catch (error) {
      if (!this.#hasFailed) this.#onFailure(error);
      this.#hasFailed = true;
      return false;
    }
  }

  #isFullFor(bytes: number): boolean {
    if (this.#bytes + bytes <= this.#maxBytes) return false;
    const message = `The tail of the logs is full (${this.#bytes} bytes): the store has not taken its events yet.`;
    if (!this.#isFull) this.#onFailure(new Error(message));
    this.#isFull = true;
    return true;
  }

  /** Begins another file; undefined if nothing was written since the last call. */
  seal(): SealedTail | undefined {
    if (this.#descriptor === undefined) return undefined;
    const file = this.#file;
    const bytes = this.#fileBytes;
    const bodies = this.#bodies;
    this.#bodies = [];
    this.close();
    return {
      remove: () => {
        // The lines first: a line without its record is ignored, too.
        this.#attempt(() => this.#remove(file, bytes));
        for (const body of bodies) this.discard(body);
      },
    };
  }

  #remove(file: string, bytes: number): void {
    rmSync(file, { force: true });
    this.#bytes -= bytes;
    this.#isFull = false;
  }

  #attempt(action: () => unknown): void {
    try {
      action();
    } catch (error) {
      this.#onFailure(error);
    }
  }

  /** Never throws. */
  close(): void {
    const descriptor = this.#descriptor;
    // Errors of closing are ignored, because its number may already be another file's.
    this.#descriptor = undefined;
    this.#attempt(() => descriptor !== undefined && closeSync(descriptor));
  }

  #open(): number {
    this.#file = fileOf(this.#directory, this.#number);
    this.#number += 1;
    this.#fileBytes = 0;
    return openSync(this.#file, openFlags, 0o600);
  }
}

function fileOf(directory: string, number: number): string {
  return join(directory, `events-${number}.tail`);
}

function bodyFileOf(directory: string, number: number): string {
  return join(directory, `events-${number}.body`);
}

function numbersIn(directory: string, pattern = name): number[] {
  return readdirSync(directory)
    .flatMap((file) => pattern.exec(file)?.[1] ?? [])
    .map(Number)
    .sort((a, b) => a - b);
}

const head = /^([\w-]+) (\d+) \{"jsonrpc":"2\.0","method":"[\w/]+","params":\{"sessionId":"([\w.-]+)","seq":(\d+),/;

/** The number of a staged record's file at the end of a line. */
const bodyNumber = /"event":(\d+)\.$/;
/** The end of each event. */
const frameEnd = Buffer.from("}}", "latin1");

/** The part of an event before a staged record. */
function headOf(frame: Buffer, { bytes }: StagedBody): string {
  return frame.toString("latin1", 0, frame.length - bytes - frameEnd.length);
}

function parsed(line: Buffer, directory: string): TailedEvent | undefined {
  const found = head.exec(line.toString("latin1", 0, 512));
  if (found === null) return undefined;
  const [, epoch = "", from = "", sessionId = "", seq = ""] = found;
  try {
    const frame = wholeFrame(line.subarray(epoch.length + from.length + 2), directory);
    JSON.parse(frame.toString("utf8"));
    return { sessionId, epoch, from: Number(from), seq: Number(seq), frame };
  } catch {
    return undefined;
  }
}

/** Adds the staged record. Throws if it is missing. */
function wholeFrame(frame: Buffer, directory: string): Buffer {
  if (frame[frame.length - 1] === 0x7d) return frame;
  const { 1: number } = bodyNumber.exec(frame.toString("latin1", Math.max(0, frame.length - 64))) ?? [];
  if (number === undefined) throw new Error("The line is torn.");
  const body = readFileSync(bodyFileOf(directory, Number(number)));
  return Buffer.concat([frame.subarray(0, frame.length - number.length - 1), body, frameEnd]);
}
