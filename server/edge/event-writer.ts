import type { Socket } from "node:net";
import type { Frame } from "../frames/frame.ts";
import type { FrameWriter } from "./outbox.ts";

/** Smaller events are copied together: that costs less than a write each. */
const largestCopied = 4 * 1024;
const carriageReturn = 0x0d;
const end = "\n\n";

/** What is to be written: a head, bytes, and the end of an event where it ends with them. */
interface Piece {
  readonly head: string;
  readonly bytes: Buffer;
  readonly isWhole: boolean;
}

/**
 * Writes notifications as server-sent events, past Node's HTTP: the frame's bytes as they are, between an id and an empty
 * line. The id is a cursor, `epoch:seq`. Where a frame has a carriage return, which would end the line, it is a line end
 * of the event's data: JSON knows both as space.
 */
export class EventWriter implements FrameWriter {
  /** The name of the log that the numbers belong to; undefined where there is none. */
  epoch: string | undefined;
  readonly #socket: Socket;
  readonly #pieceBytes: number;
  readonly #queue: Piece[] = [];
  #queuedBytes = 0;
  #within: Buffer | undefined;
  #at = 0;
  #isTorn = false;

  /** Of larger frames than `pieceBytes` one piece is written at a time. */
  constructor(socket: Socket, pieceBytes: number) {
    this.#socket = socket;
    this.#pieceBytes = pieceBytes;
  }

  get waitingBytes(): number {
    return this.#queuedBytes + this.#socket.writableLength;
  }

  get isWithin(): boolean {
    return this.#within !== undefined;
  }

  get within(): readonly Buffer[] | undefined {
    return this.#within && [this.#within];
  }

  get withinBytes(): number {
    return this.#within?.length ?? 0;
  }

  /** Whether an event was begun that will not be ended: nothing may be written any more. */
  get isTorn(): boolean {
    return this.#isTorn;
  }

  frame(frame: Frame): void {
    const bytes = frame.bytes.includes(carriageReturn) ? inLines(frame.bytes) : frame.bytes;
    const head = `${this.#id(frame)}data: `;
    if (bytes.length <= this.#pieceBytes) {
      this.#add(head, bytes, true);
      return;
    }
    this.#add(head, Buffer.alloc(0), false);
    this.#within = bytes;
    this.#at = 0;
    this.goOn();
  }

  /** There are no answers in a stream of events. */
  message(): never {
    throw new Error("A stream of events has no answers.");
  }

  goOn(): void {
    const bytes = this.#within as Buffer;
    const part = bytes.subarray(this.#at, this.#at + this.#pieceBytes);
    this.#at += part.length;
    const isLast = this.#at === bytes.length;
    if (isLast) this.#within = undefined;
    this.#add("", part, isLast);
  }

  abandon(): void {
    this.#isTorn ||= this.isWithin;
    this.#within = undefined;
  }

  flush(): void {
    for (let from = 0; from < this.#queue.length; ) {
      let to = from;
      let size = 0;
      for (; to < this.#queue.length; to += 1) {
        const { head, bytes, isWhole } = this.#queue[to] as Piece;
        if (bytes.length > largestCopied) break;
        size += head.length + bytes.length + (isWhole ? end.length : 0);
      }
      if (to > from) this.#socket.write(this.#joined(from, to, size));
      else this.#writeLarge(from);
      from = Math.max(to, from + 1);
    }
    this.#queue.length = 0;
    this.#queuedBytes = 0;
  }

  #id({ seq, firstSeq }: Frame): string {
    if (this.epoch === undefined || seq === 0) return "";
    // A gap from 0 on says that the log is another one: what follows begins with its first number.
    return `id: ${this.epoch}:${firstSeq === 0 ? 0 : seq}\n`;
  }

  #add(head: string, bytes: Buffer, isWhole: boolean): void {
    this.#queue.push({ head, bytes, isWhole });
    this.#queuedBytes += head.length + bytes.length + (isWhole ? end.length : 0);
  }

  #joined(from: number, to: number, size: number): Buffer {
    const joined = Buffer.allocUnsafe(size);
    let at = 0;
    for (let i = from; i < to; i += 1) {
      const { head, bytes, isWhole } = this.#queue[i] as Piece;
      at += joined.write(head, at, "latin1");
      at += bytes.copy(joined, at);
      if (isWhole) at += joined.write(end, at, "latin1");
    }
    return joined;
  }

  #writeLarge(i: number): void {
    const { head, bytes, isWhole } = this.#queue[i] as Piece;
    if (head !== "") this.#socket.write(head, "latin1");
    this.#socket.write(bytes);
    if (isWhole) this.#socket.write(end, "latin1");
  }
}

function inLines(bytes: Buffer): Buffer {
  return Buffer.from(bytes.toString("latin1").replaceAll("\r", "\ndata: "), "latin1");
}
