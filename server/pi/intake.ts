import type { Readable } from "node:stream";
import { JsonlSplitter } from "../../protocol/jsonl.ts";
import { largeRecordBytes } from "../frames/large-record.ts";
import { nextTurn } from "../lib/slices.ts";

export interface IntakeOptions {
  readonly stdout: Readable;
  readonly maxRecordBytes: number;
  /** Handles one record. `end`: bytes of the stream up to the end of its line. Never throws. */
  readonly onRecord: (record: Buffer, end: number) => void;
  /** Handles a large record in slices. Never rejects. */
  readonly onLarge: (parts: Buffer[], bytes: number, end: number) => Promise<void>;
  readonly onOversize: (head: Buffer, bytes: number, end: number) => void;
  /** A promise while the next record must wait. `bytes`: the size of a large one. */
  readonly room: (bytes?: number) => Promise<void> | undefined;
  /** The stream has ended and its records were handled. `rest`: the first bytes of an incomplete record. */
  readonly onEnd: (rest: Buffer | undefined) => void;
}

/** Bytes of small records that are handled in one turn of the event loop: about 1 ms. */
const turnBytes = 256 * 1024;
/** A shorter chunk is all that the child has written. */
const fullChunkBytes = 32 * 1024;

/**
 * Handles the records of a child's stdout one after the other. While one takes more than a turn of the event loop, or
 * has to wait, the records after it wait here and nothing more is read.
 */
export class Intake {
  readonly #options: IntakeOptions;
  readonly #splitter: JsonlSplitter;
  /** What waits for its turn. */
  readonly #waiting: (() => Promise<void> | undefined)[] = [];
  #working: Promise<void> | undefined;
  /** Bytes of consecutive full chunks. */
  #inRow = 0;
  #heard = 0;
  #isStopped = false;

  constructor(options: IntakeOptions) {
    this.#options = options;
    const { stdout, maxRecordBytes, onRecord, onLarge, onOversize, onEnd } = options;
    this.#splitter = new JsonlSplitter({
      maxRecordBytes,
      largeBytes: largeRecordBytes,
      onRecord: (record) => {
        if (this.#isStopped) return;
        if (this.#working !== undefined) {
          this.#keep(record, this.#splitter.consumed);
          return;
        }
        onRecord(record, this.#splitter.consumed);
        this.#wait(options.room());
      },
      onLarge: (parts, bytes) => {
        const end = this.#splitter.consumed;
        this.#pass(() => options.room(bytes)?.then(() => onLarge(parts, bytes, end)) ?? onLarge(parts, bytes, end));
      },
      onOversize: (head, bytes) => {
        const end = this.#splitter.consumed;
        this.#pass(() => void onOversize(head, bytes, end));
      },
    });
    stdout.on("data", (chunk: Buffer) => this.#read(chunk));
    stdout.on("end", () => this.#pass(() => void onEnd(this.#splitter.rest())));
  }

  /** Changes with each sign of life. A child whose output is held is not asked for one. */
  get heard(): number {
    if (this.#working !== undefined) this.#heard += 1;
    return this.#heard;
  }

  /** Handles nothing more after the record under way: it is for the next daemon. */
  stop(): void {
    this.#isStopped = true;
    this.#waiting.splice(0);
    this.#options.stdout.pause();
    this.#working ??= new Promise(() => {});
  }

  /** Resolves when everything that was read is handled. */
  async idle(): Promise<void> {
    while (this.#working !== undefined) await this.#working;
  }

  #read(chunk: Buffer): void {
    this.#heard += 1;
    this.#splitter.push(chunk);
    if (this.#working !== undefined) {
      // The end of a process resumes its streams.
      this.#options.stdout.pause();
      return;
    }
    this.#inRow = chunk.length < fullChunkBytes ? 0 : this.#inRow + chunk.length;
    if (this.#inRow > turnBytes) this.#wait(nextTurn());
  }

  /** Apart from the hot path, where a closure would cost memory for each record. */
  #keep(record: Buffer, end: number): void {
    this.#waiting.push(() => void this.#options.onRecord(record, end));
  }

  #pass(handle: () => Promise<void> | undefined): void {
    if (this.#isStopped) return;
    if (this.#working === undefined) this.#wait(handle() ?? this.#options.room());
    else this.#waiting.push(handle);
  }

  /** Holds everything until `first` has resolved and what came in the meantime is handled. */
  #wait(first: Promise<void> | undefined): void {
    if (first === undefined) return;
    this.#options.stdout.pause();
    this.#working = this.#work(first);
  }

  async #work(first: Promise<void>): Promise<void> {
    const { room, stdout } = this.#options;
    await first;
    await room();
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
      await next();
      await room();
    }
    this.#inRow = 0;
    this.#working = undefined;
    if (!this.#isStopped) stdout.resume();
  }
}
