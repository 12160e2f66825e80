import type { Socket } from "node:net";
import type { Frame } from "../frames/frame.ts";
import { headLength, maxHeadBytes, opcodes, wholeText, writeHead } from "../frames/message-head.ts";

/** Runs of bytes below this size are copied together with their neighbours: a copy costs less than a write. */
const largestCopied = 4 * 1024;
/** More than the longest small event with its id. */
const slabBytes = 4 * largestCopied;
const carriageReturn = 0x0d;
const nothing = Buffer.alloc(0);
const endOfEvent = Buffer.from("\n\n");

/** A part of a message that is larger than one write. */
interface Part {
  readonly bytes: number;
  readonly isFirst: boolean;
  readonly isLast: boolean;
}

/**
 * Writes frames to a socket directly: the bookkeeping of ws and node:http for each message costs more than the message.
 * Bytes that are adjacent in memory are one write. A message larger than `partBytes` is written one part at a time.
 */
export abstract class FrameWriter {
  protected readonly partBytes: number;
  readonly #socket: Socket;
  /** Runs of bytes to write, as (memory, start, end). */
  readonly #memory: ArrayBufferLike[] = [];
  readonly #starts: number[] = [];
  readonly #ends: number[] = [];
  #queuedBytes = 0;
  /** The pieces of the message of which only some parts are written. */
  #within: readonly Buffer[] | undefined;
  #withinBytes = 0;
  /** The next piece to write, and how many of its bytes are written. */
  #piece = 0;
  #at = 0;
  #isTorn = false;

  constructor(socket: Socket, partBytes: number) {
    this.#socket = socket;
    this.partBytes = partBytes;
  }

  /** Bytes given to the writer that the operating system has not taken yet. */
  get waitingBytes(): number {
    return this.#queuedBytes + this.#socket.writableLength;
  }

  /** Whether a message is incomplete: then only {@link goOn} may be called. */
  get isWithin(): boolean {
    return this.#within !== undefined;
  }

  /** The pieces of the incomplete message, written ones included. */
  get within(): readonly Buffer[] | undefined {
    return this.#within;
  }

  get withinBytes(): number {
    return this.#within === undefined ? 0 : this.#withinBytes;
  }

  /** Whether a message was abandoned in the middle: no further message may be written. */
  get isTorn(): boolean {
    return this.#isTorn;
  }

  /** Writes a frame, or the first part of a large one. */
  abstract frame(frame: Frame): void;

  /** Writes a message that is in pieces, or its first part. */
  message(pieces: readonly Buffer[]): void {
    this.#within = pieces;
    this.#withinBytes = pieces.reduce((bytes, { length }) => bytes + length, 0);
    this.#piece = 0;
    this.#at = 0;
    this.goOn();
  }

  /** Writes the next part. */
  goOn(): void {
    const pieces = this.#within as readonly Buffer[];
    const isFirst = this.#piece === 0 && this.#at === 0;
    const slices: Buffer[] = [];
    let bytes = 0;
    for (let piece = pieces[this.#piece]; piece !== undefined && bytes < this.partBytes; piece = pieces[this.#piece]) {
      const slice = piece.subarray(this.#at, this.#at + this.partBytes - bytes);
      slices.push(slice);
      bytes += slice.length;
      this.#at += slice.length;
      if (this.#at < piece.length) continue;
      this.#piece += 1;
      this.#at = 0;
    }
    const isLast = this.#piece === pieces.length;
    if (isLast) this.#within = undefined;
    const part: Part = { bytes, isFirst, isLast };
    this.addBytes(this.before(part));
    for (const slice of slices) this.addBytes(slice);
    this.addBytes(this.after(part));
  }

  /** Leaves the incomplete message incomplete. */
  abandon(): void {
    this.#isTorn ||= this.isWithin;
    this.#within = undefined;
  }

  /** Hands the queued bytes to the socket. */
  flush(): void {
    const { length } = this.#memory;
    for (let from = 0; from < length; ) {
      let to = from;
      let small = 0;
      while (to < length && this.#sizeOf(to) < largestCopied) {
        small += this.#sizeOf(to);
        to += 1;
      }
      if (to > from + 1) {
        this.#socket.write(this.#joined(from, to, small));
        from = to;
      } else {
        this.#socket.write(this.#bytesOf(from));
        from += 1;
      }
    }
    this.#memory.length = 0;
    this.#starts.length = 0;
    this.#ends.length = 0;
    this.#queuedBytes = 0;
  }

  /** The bytes that the protocol requires before a part. */
  protected abstract before(part: Part): Buffer;

  /** The bytes that the protocol requires after a part. */
  protected abstract after(part: Part): Buffer;

  protected addBytes(bytes: Buffer): void {
    this.add(bytes.buffer, bytes.byteOffset, bytes.byteOffset + bytes.length);
  }

  protected add(memory: ArrayBufferLike, start: number, end: number): void {
    if (start === end) return;
    this.#queuedBytes += end - start;
    const last = this.#memory.length - 1;
    if (last >= 0 && this.#memory[last] === memory && this.#ends[last] === start) {
      this.#ends[last] = end;
      return;
    }
    this.#memory.push(memory);
    this.#starts.push(start);
    this.#ends.push(end);
  }

  #sizeOf(i: number): number {
    return (this.#ends[i] as number) - (this.#starts[i] as number);
  }

  #bytesOf(i: number): Buffer {
    return Buffer.from(this.#memory[i] as ArrayBuffer, this.#starts[i], this.#sizeOf(i));
  }

  #joined(from: number, to: number, size: number): Buffer {
    const joined = Buffer.allocUnsafe(size);
    let at = 0;
    for (let i = from; i < to; i += 1) at += this.#bytesOf(i).copy(joined, at);
    return joined;
  }
}

/** Writes frames as WebSocket messages. Between the fragments of a large one, ws may write its control frames. */
export class WebSocketWriter extends FrameWriter {
  override frame({ bytes, headBytes }: Frame): void {
    if (headBytes === undefined || bytes.length > this.partBytes) this.message([bytes]);
    else this.add(bytes.buffer, bytes.byteOffset - headBytes, bytes.byteOffset + bytes.length);
  }

  protected override before({ bytes, isFirst, isLast }: Part): Buffer {
    const head = Buffer.allocUnsafe(maxHeadBytes);
    const opcode = isFirst ? opcodes.text : opcodes.continuation;
    return head.subarray(0, writeHead(head, 0, bytes, { opcode, isLast }));
  }

  protected override after(): Buffer {
    return nothing;
  }
}

/** Returns a text as a frame with its WebSocket head. */
export function messageOf(text: string): Frame {
  const length = Buffer.byteLength(text);
  const message = Buffer.allocUnsafe(headLength(length) + length);
  const headBytes = writeHead(message, 0, length, wholeText);
  message.write(text, headBytes);
  return { bytes: message.subarray(headBytes), sessionId: "", seq: 0, isDelta: false, headBytes };
}

/**
 * Writes frames as server-sent events: an id, the frame's bytes, and an empty line. The id is a cursor, `epoch:seq`. A
 * carriage return would end the line, so it becomes a new `data:` line: in JSON both are white space.
 */
export class EventWriter extends FrameWriter {
  /** The name of the log that numbers the frames; undefined if they have no log. */
  epoch: string | undefined;
  /** The fields before the data of the event that is being written. */
  #head = "";
  /** Small events are adjacent in this memory, so that a flush is one write. */
  #slab = nothing;
  #used = 0;

  override frame(frame: Frame): void {
    const bytes = frame.bytes.includes(carriageReturn) ? inLines(frame.bytes) : frame.bytes;
    this.#head = `${this.#id(frame)}data: `;
    if (bytes.length > Math.min(largestCopied, this.partBytes)) {
      this.message([bytes]);
      return;
    }
    if (this.#used + this.#head.length + bytes.length + endOfEvent.length > this.#slab.length) {
      this.#slab = Buffer.allocUnsafeSlow(slabBytes);
      this.#used = 0;
    }
    const start = this.#used;
    let at = start + this.#slab.write(this.#head, start, "latin1");
    at += bytes.copy(this.#slab, at);
    at += endOfEvent.copy(this.#slab, at);
    this.#used = at;
    this.add(this.#slab.buffer, start, at);
  }

  protected override before({ isFirst }: Part): Buffer {
    return isFirst ? Buffer.from(this.#head, "latin1") : nothing;
  }

  protected override after({ isLast }: Part): Buffer {
    return isLast ? endOfEvent : nothing;
  }

  #id({ seq, firstSeq }: Frame): string {
    if (this.epoch === undefined || seq === 0) return "";
    // A gap from 0 means that the log is a new one: what follows begins with its first number.
    return `id: ${this.epoch}:${firstSeq === 0 ? 0 : seq}\n`;
  }
}

function inLines(bytes: Buffer): Buffer {
  return Buffer.from(bytes.toString("latin1").replaceAll("\r", "\ndata: "), "latin1");
}
