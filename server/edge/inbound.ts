import type { Socket } from "node:net";
import type { Grant } from "../rpc/grant.ts";
import { Shares } from "../rpc/shares.ts";
import type { EdgeLimits } from "./limits.ts";
import { UnfinishedMessage } from "./unfinished-message.ts";

/** So much of a connection is not counted: of what is not whole, and of what waits for its answer. */
const uncountedBytes = 64 * 1024;

/** What comes over all WebSockets. */
export function inboundShares(limits: EdgeLimits): Shares {
  return new Shares({
    what: "bytes of messages that are not whole, or not answered",
    max: limits.maxInboundBytes,
    maxPerToken: limits.maxInboundBytesPerToken,
    namedTokensPercent: limits.namedTokensPercent,
  });
}

export interface InboundOptions {
  readonly socket: Socket;
  readonly grant: Grant | undefined;
  readonly shares: Shares;
  readonly messageTimeoutMs: number;
  /** There is no room for what comes. Called once. */
  readonly onFull: () => void;
}

/** What comes over one WebSocket and is kept: a message that is not whole, and those that wait for their answer. */
export class Inbound {
  readonly #options: InboundOptions;
  readonly #unfinished = new UnfinishedMessage();
  /** Of the message that is not whole, as it is counted. */
  #counted = 0;
  /** Of the messages that wait for their answer. */
  #answering = 0;
  #isClosed = false;

  constructor(options: InboundOptions) {
    this.#options = options;
    // In front of who reads it: what has come is known before the message that it ends.
    options.socket.prependListener("data", (chunk: Buffer) => this.#came(chunk));
  }

  /** Whether a message does not come to its end. */
  get isLate(): boolean {
    const { since } = this.#unfinished;
    return since !== undefined && performance.now() - since > this.#options.messageTimeoutMs;
  }

  /** Counts a whole message until it is {@link answered}. False: there is no room for it. */
  take(bytes: number): boolean {
    const more = countedOf(this.#answering + bytes) - countedOf(this.#answering);
    if (more > 0 && !this.#hasRoom(more)) return false;
    this.#answer(bytes, more);
    return true;
  }

  answered(bytes: number): void {
    if (!this.#isClosed) this.#answer(-bytes, countedOf(this.#answering - bytes) - countedOf(this.#answering));
  }

  /** Nothing is kept any more. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#options.shares.add(this.#options.grant, -this.#counted - countedOf(this.#answering));
  }

  #came(chunk: Buffer): void {
    if (this.#isClosed) return;
    this.#unfinished.take(chunk);
    const { bytes } = this.#unfinished;
    const counted = countedOf(bytes);
    const more = counted - this.#counted;
    if (more === 0 || (more > 0 && !this.#hasRoom(more))) return;
    this.#counted = counted;
    this.#options.shares.add(this.#options.grant, more);
  }

  #answer(bytes: number, counted: number): void {
    this.#answering += bytes;
    if (counted !== 0) this.#options.shares.add(this.#options.grant, counted);
  }

  #hasRoom(bytes: number): boolean {
    if (this.#options.shares.refusal(this.#options.grant, bytes) === undefined) return true;
    this.#options.onFull();
    return false;
  }
}

function countedOf(bytes: number): number {
  return bytes > uncountedBytes ? bytes : 0;
}
