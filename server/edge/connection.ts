import { randomUUID } from "node:crypto";
import type { Socket } from "node:net";
import type { Logger } from "pino";
import type { RawData, WebSocket } from "ws";
import type { Frame } from "../frames/frame.ts";
import { answerText } from "../rpc/answer-text.ts";
import type { Peer } from "../rpc/call.ts";
import type { Conversation, Dispatcher } from "../rpc/dispatcher.ts";
import type { Grant } from "../rpc/grant.ts";
import type { Shares } from "../rpc/shares.ts";
import type { Lane } from "../rpc/turns.ts";
import type { BufferBudget } from "./buffer-budget.ts";
import { Inbound } from "./inbound.ts";
import type { EdgeLimits } from "./limits.ts";
import { Outbox, type SlowReader } from "./outbox.ts";

export interface ConnectionOptions {
  readonly webSocket: WebSocket;
  readonly socket: Socket;
  readonly dispatcher: Dispatcher;
  /** What its token allows. */
  readonly grant: Grant | undefined;
  /** It came over the Unix socket. */
  readonly isLocal: boolean;
  readonly limits: EdgeLimits;
  /** What waits for all connections. */
  readonly budget: BufferBudget;
  /** What has come over all connections and is kept. */
  readonly inbound: Shares;
  readonly log: Logger;
}

/** Why the daemon closes a WebSocket. The reason goes with it as text. */
const closeCodes = {
  shuttingDown: 1001,
  binaryFrame: 1003,
  tokenEnded: 4401,
  tryLater: 1013,
} as const;

/** What is read in a turn: short messages cost much more than their bytes. */
const maxReadBytes = 16_384;

/** While so many pongs wait for the system, further pings are answered by one pong. */
const maxUnsentPongs = 64;

/** One WebSocket: texts in, answers and notifications out. */
export class Connection implements Peer {
  readonly id = randomUUID();
  readonly #gone = new AbortController();
  readonly #options: ConnectionOptions;
  readonly #outbox: Outbox;
  readonly #inbound: Inbound;
  readonly #conversation: Conversation;
  readonly #lane: Lane;
  /** Nothing more is read: what it has sent waits for its token's turn. */
  #isHeld = false;
  /** Messages that wait for the token's turn. */
  #waiting: (Buffer | undefined)[] = [];
  /** How many of these were received. */
  #received = 0;
  /** How many bytes had come at the last ping. */
  #bytesAtPing = 0;
  /** How many bytes the system had taken at the last ping. */
  #taken = 0;
  /** Pongs that the system has not taken yet. */
  #unsentPongs = 0;
  /** The newest ping that waits until one of these pongs is sent. */
  #waitingPing: Buffer | undefined;

  constructor(options: ConnectionOptions) {
    this.#options = options;
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
        // Stands behind what the socket has: a peer that does not read that until the time-out will not see it.
        webSocket.close(closeCodes.tryLater, closeReason(slow));
      },
    });
    this.#inbound = new Inbound({
      socket,
      grant: options.grant,
      shares: options.inbound,
      messageTimeoutMs: limits.messageTimeoutMs,
      onFull: () => this.#refuseMore("too much comes at a time"),
    });
    this.#conversation = options.dispatcher.converse(this, options.grant, options.isLocal);
    // With a listener for it, `data` is emitted by `read` alone: ws gets what has come when it is the token's turn.
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

  inTurn<T>(work: () => T): T | Promise<Awaited<T>> {
    return this.#lane.pass(work);
  }

  /**
   * Called at each interval: a peer from which no byte has come since the last ping, and that took none, is half open. Bytes
   * count rather than messages: on a slow link a pong waits until the message that the peer uploads is complete, and the ping
   * waits until the peer has read what was sent before it.
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
    // The first is the request for the upgrade.
    const hasSent = socket.bytesRead > this.#bytesAtPing;
    this.#bytesAtPing = socket.bytesRead;
    if (!hasSent && !hasTaken && !this.#isHeld) {
      webSocket.terminate();
      return;
    }
    webSocket.ping();
  }

  /**
   * Answers each ping while the peer reads the pongs. Where it does not, only the newest ping is kept and answered later (RFC
   * 6455, section 5.5.3): ws itself would cut the connection without a close frame.
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

  shutDown(): void {
    this.#close(closeCodes.shuttingDown, "shutting down");
  }

  /** Its token is revoked, or has another secret: what has not left yet is given up, and all its calls. */
  tokenEnded(): void {
    this.#outbox.close();
    this.#options.webSocket.close(closeCodes.tokenEnded, "the token has ended");
    this.#end();
  }

  #message(data: RawData, isBinary: boolean): void {
    const { webSocket } = this.#options;
    // What stood behind the frame for which it was closed.
    if (webSocket.readyState !== webSocket.OPEN) return;
    if (isBinary) {
      this.#close(closeCodes.binaryFrame, "messages are text");
      return;
    }
    const text = data as Buffer;
    if (!this.#inbound.take(text.length)) return;
    if (this.#isHeld || this.#lane.isBusy) this.#waiting.push(text);
    else this.#receive(text);
  }

  /** Reads what has come, and receives the messages in it: at once, where the token has not used its slice, else in its turns. */
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
      // At the end there is nothing to read, which says that it is the end.
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
    // Other connections of the token come first, and the answers that are there already.
    setImmediate(() => {
      this.#letGo();
      this.#read();
    });
  };

  #letGo(): void {
    this.#isHeld = false;
    // It could not show until now that it lives.
    this.#bytesAtPing = -1;
  }

  #receive(text: Buffer): void {
    void this.#conversation.receive(text, (answer) => {
      this.#inbound.answered(text.length);
      if (answer !== undefined) this.#outbox.answer(answerText(answer, this.#options.log));
    });
  }

  #close(code: number, reason: string): void {
    this.#outbox.finish();
    this.#options.webSocket.close(code, reason);
  }

  /** What still comes stays with the system: ws ends who is not heard to close. */
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

/** Where to go on, if it is about one session. With several, the client knows best what it has of each. */
function closeReason({ sent }: SlowReader): string {
  const [seq, ...others] = sent.values();
  return seq === undefined || others.length > 0 ? "slow reader: resume after what you have" : `resume after ${seq}`;
}
