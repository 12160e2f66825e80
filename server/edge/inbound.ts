import type { Socket } from "node:net";
import type { Grant } from "../rpc/grant.ts";
import type { Quota } from "../rpc/quota.ts";
import { UnfinishedMessage } from "./unfinished-message.ts";

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
