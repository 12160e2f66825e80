import type { Socket } from "node:net";
import type { Frame } from "../frames/frame.ts";
import { headLength, maxHeadBytes, opcodes, wholeText, writeHead } from "../frames/message-head.ts";

/** A run of messages below it is copied together with its neighbours: that costs less than a write of its own. */
const largestCopied = 4 * 1024;

/** A text as a frame that has its head. */
export function messageOf(text: string): Frame {
  const length = Buffer.byteLength(text);
  const message = Buffer.allocUnsafe(headLength(length) + length);
  const headBytes = writeHead(message, 0, length, wholeText);
  message.write(text, headBytes);
  return { bytes: message.subarray(headBytes), sessionId: "", seq: 0, isDelta: false, headBytes };
}

/**
 * Writes WebSocket messages to a socket, past the library: its bookkeeping for each message costs more than the message.
 * Messages that lie one behind the other in memory are one write. Larger ones than `fragmentBytes` go out in fragments,
 * between which the library may write its control frames.
 */
export class MessageWriter {
  readonly #socket: Socket;
  readonly #fragmentBytes: number;
  /** Runs of bytes to be written, as (memory, start, end). */
  readonly #memory: ArrayBufferLike[] = [];
  readonly #starts: number[] = [];
  readonly #ends: number[] = [];
  #queuedBytes = 0;
  /** The message of which only a part was written. */
  #within: readonly Buffer[] | undefined;
  #withinBytes = 0;
  /** The piece of it that comes next, and how much of that was written. */
  #piece = 0;
  #at = 0;

  constructor(socket: Socket, fragmentBytes: number) {
    this.#socket = socket;
    this.#fragmentBytes = fragmentBytes;
  }

  /** What was given to it and the system has not taken yet. */
  get waitingBytes(): number {
    return this.#queuedBytes + this.#socket.writableLength;
  }

  /** Whether a message was begun and not ended: only {@link goOn} may be called. */
  get isWithin(): boolean {
    return this.#within !== undefined;
  }

  /** It, as a whole. */
  get within(): readonly Buffer[] | undefined {
    return this.#within;
  }

  get withinBytes(): number {
    return this.#within === undefined ? 0 : this.#withinBytes;
  }

  frame({ bytes, headBytes }: Frame): void {
    if (headBytes !== undefined && bytes.length <= this.#fragmentBytes) {
      this.#add(bytes.buffer, bytes.byteOffset - headBytes, bytes.byteOffset + bytes.length);
    } else if (bytes.length > this.#fragmentBytes) {
      this.message([bytes]);
    } else {
      const head = Buffer.allocUnsafe(maxHeadBytes);
      this.#addBytes(head.subarray(0, writeHead(head, 0, bytes.length, wholeText)));
      this.#addBytes(bytes);
    }
  }

  /** Begins a message that is in pieces. */
  message(pieces: readonly Buffer[]): void {
    this.#within = pieces;
    this.#withinBytes = pieces.reduce((bytes, { length }) => bytes + length, 0);
    this.#piece = 0;
    this.#at = 0;
    this.goOn();
  }

  /** Writes the next fragment. */
  goOn(): void {
    const pieces = this.#within as readonly Buffer[];
    const opcode = this.#piece === 0 && this.#at === 0 ? opcodes.text : opcodes.continuation;
    const parts: Buffer[] = [];
    let bytes = 0;
    for (
      let piece = pieces[this.#piece];
      piece !== undefined && bytes < this.#fragmentBytes;
      piece = pieces[this.#piece]
    ) {
      const part = piece.subarray(this.#at, this.#at + this.#fragmentBytes - bytes);
      parts.push(part);
      bytes += part.length;
      this.#at += part.length;
      if (this.#at < piece.length) continue;
      this.#piece += 1;
      this.#at = 0;
    }
    const isLast = this.#piece === pieces.length;
    if (isLast) this.#within = undefined;
    const head = Buffer.allocUnsafe(maxHeadBytes);
    this.#addBytes(head.subarray(0, writeHead(head, 0, bytes, { opcode, isLast })));
    for (const part of parts) this.#addBytes(part);
  }

  /** Leaves a message as it is that was begun. Nothing may be written then but control frames. */
  abandon(): void {
    this.#within = undefined;
  }

  /** Gives to the socket what was written. */
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

  #addBytes(bytes: Buffer): void {
    this.#add(bytes.buffer, bytes.byteOffset, bytes.byteOffset + bytes.length);
  }

  #add(memory: ArrayBufferLike, start: number, end: number): void {
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
