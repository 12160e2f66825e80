import { closeSync, constants, openSync, readdirSync, readFileSync, rmSync, writevSync } from "node:fs";
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

const name = /^events-(\d+)\.tail$/;
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
    this.#number = Math.max(0, ...numbersIn(directory)) + 1;
  }

  /** The events of an earlier daemon, in order. Other bytes, such as a torn end, are skipped. */
  static *left(directory: string): Generator<TailedEvent, void> {
    for (const number of numbersIn(directory)) {
      const bytes = readFileSync(fileOf(directory, number));
      let start = 0;
      for (let end = bytes.indexOf(0x0a); end !== -1; end = bytes.indexOf(0x0a, start)) {
        const event = parsed(bytes.subarray(start, end));
        if (event !== undefined) yield event;
        start = end + 1;
      }
    }
  }

  /** Deletes the files of an earlier daemon. */
  static clear(directory: string): void {
    for (const number of numbersIn(directory)) rmSync(fileOf(directory, number), { force: true });
  }

  /**
   * Writes a frame of a log. Never throws: an unwritten frame is lost only if the daemon is killed before it is
   * stored.
   */
  append(epoch: string, from: number, frame: Buffer): void {
    if (this.#bytes + frame.length > this.#maxBytes) {
      const message = `The tail of the logs is full (${this.#bytes} bytes), because the store is failing.`;
      if (!this.#isFull) this.#onFailure(new Error(message));
      this.#isFull = true;
      return;
    }
    try {
      this.#descriptor ??= this.#open();
      // Ends a partial line of a failed write.
      const head = Buffer.from(`${this.#hasFailed ? "\n" : ""}${epoch} ${from} `, "latin1");
      const length = head.length + frame.length + lineFeed.length;
      const written = writevSync(this.#descriptor, [head, frame, lineFeed]);
      this.#bytes += written;
      this.#fileBytes += written;
      if (written < length) throw new Error(`Of ${length} bytes ${written} were written.`);
      this.#hasFailed = false;
    } catch (error) {
      if (!this.#hasFailed) this.#onFailure(error);
      this.#hasFailed = true;
    }
  }

  /** Begins another file; undefined if nothing was written since the last call. */
  seal(): SealedTail | undefined {
    if (this.#descriptor === undefined) return undefined;
    const file = this.#file;
    const bytes = this.#fileBytes;
    this.close();
    return { remove: () => this.#attempt(() => this.#remove(file, bytes)) };
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

function numbersIn(directory: string): number[] {
  return readdirSync(directory)
    .flatMap((file) => name.exec(file)?.[1] ?? [])
    .map(Number)
    .sort((a, b) => a - b);
}

const head = /^([\w-]+) (\d+) \{"jsonrpc":"2\.0","method":"[\w/]+","params":\{"sessionId":"([\w.-]+)","seq":(\d+),/;

function parsed(line: Buffer): TailedEvent | undefined {
  const found = head.exec(line.toString("latin1", 0, 512));
  if (found === null || line[line.length - 1] !== 0x7d) return undefined;
  const [, epoch = "", from = "", sessionId = "", seq = ""] = found;
  const frame = line.subarray(epoch.length + from.length + 2);
  try {
    JSON.parse(frame.toString("utf8"));
  } catch {
    return undefined;
  }
  return { sessionId, epoch, from: Number(from), seq: Number(seq), frame };
}
