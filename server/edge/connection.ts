import type { Socket } from "node:net";
import type { Logger } from "pino";
import type { RawData, WebSocket } from "ws";
import type { Frame } from "../frames/frame.ts";
import { answerText, wholeText } from "../rpc/answer-text.ts";
import type { Peer } from "../rpc/call.ts";
import type { Conversation, Dispatcher } from "../rpc/dispatcher.ts";
import type { Grant } from "../rpc/grant.ts";
import type { Quota } from "../rpc/quota.ts";
import type { Lane } from "../rpc/turns.ts";
import type { BufferBudget } from "./buffer-budget.ts";
import { messageOf } from "./frame-writer.ts";
import { Inbound } from "./inbound.ts";
import type { EdgeLimits } from "./limits.ts";
import { Outbox, type SlowReader } from "./outbox.ts";

export interface ConnectionOptions {
  /** Unique in the daemon's life. */
  readonly id: string;
  readonly webSocket: WebSocket;
  readonly socket: Socket;
  readonly dispatcher: Dispatcher;
  /** Whether binary messages are ignored. Otherwise one closes the connection. */
  readonly ignoresBinary: boolean;
  /** The grant of its token. */
  readonly grant: Grant | undefined;
  /** Whether it came over the Unix socket. */
  readonly isLocal: boolean;
  readonly limits: EdgeLimits;
  /** The frames that wait for all connections. */
  readonly budget: BufferBudget;
  /** The received bytes that all connections hold. */
  readonly inbound: Quota;
  readonly log: Logger;
}

/** Close codes of the daemon. Each is sent with a reason as text. */
const closeCodes = {
  shuttingDown: 1001,
  binaryFrame: 1003,
  restarting: 1012,
  tokenEnded: 4401,
  tryLater: 1013,
} as const;

/** Bytes to read in one turn: short messages cost much more than their bytes. */
const maxReadBytes = 16_384;

/** While so many pongs wait for the operating system, further pings get one pong together. */
const maxUnsentPongs = 64;

/** One WebSocket: receives texts, sends answers and notifications. */
export class Connection implements Peer {
  readonly id: string;
  readonly #gone = new AbortController();
  readonly #options: ConnectionOptions;
  readonly #outbox: Outbox;
  readonly #inbound: Inbound;
  readonly #conversation: Conversation;
  readonly #lane: Lane;
  /** Nothing more is read, because received messages wait for the token's turn. */
  #isHeld = false;
  /** The messages that wait for the token's turn. */
  #waiting: (Buffer | undefined)[] = [];
  /** How many of {@link #waiting} were received. */
  #received = 0;
  /** Bytes received until the last ping. */
  #bytesAtPing = 0;
  /** Bytes that the operating system had taken until the last ping. */
  #taken = 0;
  /** Pongs that the operating system has not taken yet. */
  #unsentPongs = 0;
  /** The newest ping that waits until one of {@link #unsentPongs} is sent. */
  #waitingPing: Buffer | undefined;

  constructor(options: ConnectionOptions) {
    this.#options = options;
    this.id = options.id;
    const { webSocket, socket, limits, budget } = options;
    const log = options.log.child({ connectionId: this.id });
    this.#lane = options.dispatcher.lane(options.grant);
    this.#outbox = new Outbox({
      socket,
      isOpen: () => webSocket.readyState === webSocket.OPEN,
      limits,
      budget,
      grant: options.grant,
      lane: this.#lane,
      onOverflow: (slow) => {
        const { bound, bufferedBytes } = slow;
        log.warn({ bound, bufferedBytes }, "a connection does not read what is sent to it");
        // The close follows the bytes in the socket's buffer: a peer that does not read them in time does not see it.
        webSocket.close(closeCodes.tryLater, closeReason(slow));
        this.#conversation.end();
      },
    });
    this.#inbound = new Inbound({
      socket,
      grant: options.grant,
      quota: options.inbound,
      messageTimeoutMs: limits.messageTimeoutMs,
      onFull: () => this.#refuseMore("too much comes at a time"),
    });
    this.#conversation = options.dispatcher.converse(this, options.grant, options.isLocal);
    // A listener for `readable` makes `read` the only source of `data`, so that ws gets bytes in the token's turn.
    socket.on("readable", () => this.#read());
    webSocket.on("message", (data, isBinary) => this.#message(data, isBinary));
    webSocket.on("ping", (data) => this.#answerPing(data));
    webSocket.on("close", (code) => {
      log.debug({ code }, "a connection has ended");
      this.#end();
    });
    webSocket.on("error", (error) => log.debug({ err: error }, "a WebSocket failed"));
    log.debug({ tokenName: options.grant?.name }, "a connection was opened");
  }

  get grant(): Grant | undefined {
    return this.#options.grant;
  }

  get gone(): AbortSignal {
    return this.#gone.signal;
  }

  send(frame: Frame): void {
    if (this.#options.grant?.isEnded !== true) this.#outbox.send(frame);
  }

  drained(): Promise<void> | undefined {
    return this.#outbox.drained();
  }

  held(bytes: number): void {
    this.#outbox.holdElsewhere(bytes);
  }

  inTurn<T>(work: () => T): T | Promise<Awaited<T>> {
    return this.#lane.pass(work);
  }

  /**
   * Called at each interval. A peer that has neither sent nor taken a byte since the last ping is half open. Bytes count
   * rather than pongs, because on a slow link a pong waits for the end of the peer's own message, and the ping waits for
   * the messages before it.
   */
  ping(): void {
    const { webSocket, socket } = this.#options;
    if (this.#inbound.isLate) {
      this.#refuseMore("a message came too slowly");
      return;
    }
    const taken = socket.bytesWritten - socket.writableLength;
    const hasTaken = taken > this.#taken && socket.writableLength > 0;
    this.#taken = taken;
    // The first bytes are the request for the upgrade.
    const hasSent = socket.bytesRead > this.#bytesAtPing;
    this.#bytesAtPing = socket.bytesRead;
    if (!hasSent && !hasTaken && !this.#isHeld) {
      webSocket.terminate();
      return;
    }
    webSocket.ping();
  }

  /**
   * Answers each ping while the peer reads the pongs. Otherwise keeps the newest ping and answers it later (RFC 6455,
   * section 5.5.3): ws itself would destroy the connection without a close frame.
   */
  #answerPing(data: Buffer): void {
    if (this.#unsentPongs >= maxUnsentPongs) {
      this.#waitingPing = data;
      return;
    }
    this.#unsentPongs += 1;
    this.#options.webSocket.pong(data, false, () => {
      this.#unsentPongs -= 1;
      const waiting = this.#waitingPing;
      this.#waitingPing = undefined;
      if (waiting !== undefined) this.#answerPing(waiting);
    });
  }

  shutDown(isRestart: boolean): void {
    if (isRestart) this.#close(closeCodes.restarting, "restarting");
    else this.#close(closeCodes.shuttingDown, "shutting down");
  }

  /** Called when the token is revoked or gets another secret: discards waiting frames and cancels all calls. */
  tokenEnded(): void {
    this.#outbox.close();
    this.#options.webSocket.close(closeCodes.tokenEnded, "the token has ended");
    this.#end();
  }

  #message(data: RawData, isBinary: boolean): void {
    const { webSocket } = this.#options;
    // A message after the frame for which the WebSocket was closed.
    if (webSocket.readyState !== webSocket.OPEN) return;
    if (isBinary && this.#options.ignoresBinary) return;
    if (isBinary) {
      this.#close(closeCodes.binaryFrame, "messages are text");
      return;
    }
    const text = data as Buffer;
    if (!this.#inbound.take(text.length)) return;
    if (this.#isHeld || this.#lane.isBusy) this.#waiting.push(text);
    else this.#receive(text);
  }

  /** Reads the received bytes: at once if the token has not used its slice, otherwise in its turns. */
  #read(): void {
    if (this.#isHeld) return;
    if (!this.#lane.isBusy) this.#lane.count(() => this.#options.socket.read());
    if (!this.#lane.isBusy) return;
    this.#isHeld = true;
    void this.#lane.pass(this.#turn);
  }

  /** Receives the next message, or reads some. */
  readonly #turn = (): void => {
    const text = this.#waiting[this.#received];
    if (text === undefined) {
      const { socket } = this.#options;
      // At the end of the stream, `read` returns null.
      if (socket.read(Math.min(socket.readableLength, maxReadBytes) || undefined) === null) {
        this.#letGo();
        return;
      }
    } else {
      this.#waiting[this.#received++] = undefined;
      this.#receive(text);
    }
    if (this.#received < this.#waiting.length) {
      void this.#lane.pass(this.#turn);
      return;
    }
    this.#waiting = [];
    this.#received = 0;
    // Other connections of the token come first, and finished answers.
    setImmediate(() => {
      this.#letGo();
      this.#read();
    });
  };

  #letGo(): void {
    this.#isHeld = false;
    // Held bytes were not read, so the next ping must not take the peer for half open.
    this.#bytesAtPing = -1;
  }

  #receive(text: Buffer): void {
    void this.#conversation.receive(text, (answer, place) => {
      this.#inbound.answered(text.length);
      const written = answer === undefined ? undefined : answerText(answer, this.#options.log);
      if (place !== undefined) place.fill(written === undefined ? undefined : messageOf(wholeText(written)));
      else if (written !== undefined) this.#outbox.answer(written);
    });
  }

  #close(code: number, reason: string): void {
    this.#outbox.finish();
    this.#options.webSocket.close(code, reason);
  }

  /** Closes and reads no more: bytes stay in the operating system, and ws ends the socket after its close timeout. */
  #refuseMore(reason: string): void {
    const { webSocket, log } = this.#options;
    if (webSocket.readyState !== webSocket.OPEN) return;
    log.warn({ connectionId: this.id, reason }, "a connection was closed for what it sends");
    this.#close(closeCodes.tryLater, reason);
    webSocket.pause();
  }

  #end(): void {
    this.#inbound.close();
    this.#outbox.close();
    this.#gone.abort();
    this.#conversation.end();
  }
}

/** Returns where to resume if all frames were of one session. With several, the client knows what it has of each. */
function closeReason({ sent }: SlowReader): string {
  const [seq, ...others] = sent.values();
  return seq === undefined || others.length > 0 ? "slow reader: resume after what you have" : `resume after ${seq}`;
}
