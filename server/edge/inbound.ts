import type { Socket } from "node:net";
import type { Grant } from "../rpc/grant.ts";
import type { Quota } from "../rpc/quota.ts";

/** Up to this size a connection's incomplete message is not counted, nor are its messages that wait for an answer. */
const uncountedBytes = 64 * 1024;

export interface InboundOptions {
  readonly socket: Socket;
  readonly grant: Grant | undefined;
  readonly quota: Quota;
  readonly messageTimeoutMs: number;
  /** The quota is full. Called once. */
  readonly onFull: () => void;
}

/** The received bytes that one WebSocket holds: an incomplete message, and the messages that wait for their answer. */
export class Inbound {
  readonly #options: InboundOptions;
  readonly #unfinished = new UnfinishedMessage();
  /** Counted bytes of the incomplete message. */
  #counted = 0;
  /** Bytes of the messages that wait for their answer. */
  #answering = 0;
  #isClosed = false;

  constructor(options: InboundOptions) {
    this.#options = options;
    // The listener precedes that of ws, so that bytes are counted before the message that they complete.
    options.socket.prependListener("data", (chunk: Buffer) => this.#received(chunk));
  }

  /** Whether the incomplete message has exceeded its timeout. */
  get isLate(): boolean {
    const { since } = this.#unfinished;
    return since !== undefined && performance.now() - since > this.#options.messageTimeoutMs;
  }

  /** Counts a complete message until it is {@link answered}. Returns false if the quota is full. */
  take(bytes: number): boolean {
    const more = countedOf(this.#answering + bytes) - countedOf(this.#answering);
    if (more > 0 && !this.#hasRoom(more)) return false;
    this.#answer(bytes, more);
    return true;
  }

  answered(bytes: number): void {
    if (!this.#isClosed) this.#answer(-bytes, countedOf(this.#answering - bytes) - countedOf(this.#answering));
  }

  /** Returns all counted bytes to the quota. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#options.quota.add(this.#options.grant, -this.#counted - countedOf(this.#answering));
  }

  #received(chunk: Buffer): void {
    if (this.#isClosed) return;
    this.#unfinished.take(chunk);
    const { bytes } = this.#unfinished;
    const counted = countedOf(bytes);
    const more = counted - this.#counted;
    if (more === 0 || (more > 0 && !this.#hasRoom(more))) return;
    this.#counted = counted;
    this.#options.quota.add(this.#options.grant, more);
  }

  #answer(bytes: number, counted: number): void {
    this.#answering += bytes;
    if (counted !== 0) this.#options.quota.add(this.#options.grant, counted);
  }

  #hasRoom(bytes: number): boolean {
    if (this.#options.quota.refusal(this.#options.grant, bytes) === undefined) return true;
    this.#options.onFull();
    return false;
  }
}

function countedOf(bytes: number): number {
  return bytes > uncountedBytes ? bytes : 0;
}

/** The longest head of a frame: two bytes, eight of the length, four of the mask. */
const maxHeadBytes = 14;
/** The memory that a kept fragment takes in addition to its bytes. */
const fragmentBytes = 256;

/** Follows the frame heads in a WebSocket's bytes, to count how much of an incomplete message has arrived. */
export class UnfinishedMessage {
  readonly #head = Buffer.alloc(maxHeadBytes);
  #headLength = 0;
  /** Missing bytes of the current frame's payload. */
  #left = 0;
  #bytes = 0;
  #since: number | undefined;

  /** The received bytes of the incomplete message, with the memory of its fragments. */
  get bytes(): number {
    return this.#bytes;
  }

  /** When its first bytes arrived, in the time of `performance.now()`; undefined if no message is incomplete. */
  get since(): number | undefined {
    return this.#since;
  }

  /** Counts the next bytes. */
  take(chunk: Buffer): void {
    let at = 0;
    while (at < chunk.length) {
      if (this.#left > 0) {
        const taken = Math.min(this.#left, chunk.length - at);
        at += taken;
        this.#left -= taken;
        if (!this.#isControl) this.#bytes += taken;
        if (this.#left === 0) this.#frameEnded();
      } else {
        this.#head[this.#headLength] = chunk[at] as number;
        this.#headLength += 1;
        at += 1;
        if (this.#headLength > 1 && this.#headLength === this.#wholeHeadLength) this.#headEnded();
      }
    }
    this.#since = this.#bytes === 0 ? undefined : (this.#since ?? performance.now());
  }

  get #isControl(): boolean {
    return ((this.#head[0] as number) & 0x08) !== 0;
  }

  get #wholeHeadLength(): number {
    const second = this.#head[1] as number;
    const short = second & 0x7f;
    const more = short === 127 ? 8 : short === 126 ? 2 : 0;
    return 2 + more + (second & 0x80 ? 4 : 0);
  }

  #headEnded(): void {
    const short = (this.#head[1] as number) & 0x7f;
    if (short < 126) this.#left = short;
    else this.#left = short === 126 ? this.#head.readUInt16BE(2) : Number(this.#head.readBigUInt64BE(2));
    if (!this.#isControl) this.#bytes += fragmentBytes;
    if (this.#left === 0) this.#frameEnded();
  }

  #frameEnded(): void {
    this.#headLength = 0;
    const isLast = ((this.#head[0] as number) & 0x80) !== 0;
    if (!isLast || this.#isControl) return;
    this.#bytes = 0;
    this.#since = undefined;
  }
}
