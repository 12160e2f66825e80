import type { Socket } from "node:net";
import type { Frame } from "../frames/frame.ts";
import type { Text } from "../rpc/answer-text.ts";
import { Backlog } from "./backlog.ts";
import type { BufferBudget } from "./buffer-budget.ts";
import { MessageWriter, messageOf } from "./message-writer.ts";

/** What frames are written by. */
export type FrameWriter = Pick<
  MessageWriter,
  "abandon" | "flush" | "frame" | "goOn" | "isWithin" | "waitingBytes" | "within" | "withinBytes"
>;

export interface OutboxLimits {
  /** What the socket is given at a time; more waits here, where it can be merged, left out, and overtaken. */
  readonly socketWindowBytes: number;
  readonly mergeDeltasAboveBytes: number;
  readonly dropDeltasAboveBytes: number;
  /** What cannot be left out, beside the last frame. */
  readonly maxBufferedBytes: number;
  /** How long the peer may take for a window while more waits. */
  readonly slowReaderDeadlineMs: number;
}

export interface OutboxOptions {
  readonly socket: Socket;
  /** Whether messages may be written: the connection is open. */
  readonly isOpen: () => boolean;
  readonly limits: OutboxLimits;
  readonly budget: BufferBudget;
  /** Default: as WebSocket messages. */
  readonly writer?: FrameWriter;
  /** The peer reads too slowly; what waited is given up. Called once. */
  readonly onOverflow: (why: SlowReader) => void;
}

/** Why a peer is given up. */
export interface SlowReader {
  readonly bound: "maxBufferedBytes" | "maxBufferedBytesAllConnections" | "slowReaderDeadlineMs";
  readonly bufferedBytes: number;
  /** The newest number of each session of which frames went out. */
  readonly sent: ReadonlyMap<string, number>;
}

/** So much goes to the socket at once, also in the middle of a turn. */
const pieceBytes = 64 * 1024;
/** How much a backlog grows before all of them are added up. */
const enforceEveryBytes = 1024 * 1024;

/**
 * What goes to one connection. All of one turn of the event loop leaves in one write to the system, which costs far more
 * than a frame. As long as the peer reads, frames pass straight through. When it does not, they wait here: see
 * {@link Backlog}. Answers overtake frames that wait; frames keep their order.
 */
export class Outbox {
  readonly #options: OutboxOptions;
  readonly #writer: FrameWriter;
  readonly #window: number;
  readonly #backlog = new Backlog();
  readonly #flush = (): void => {
    this.#scheduled = false;
    this.flush();
  };
  readonly #flushSoon = (): void => {
    this.#scheduledSoon = false;
    this.flush();
  };
  readonly #sent = new Map<string, number>();
  /** The newest numbered frame that went out. Its session is not in {@link #sent} yet. */
  #newest: Pick<Frame, "sessionId" | "seq"> = { sessionId: "", seq: 0 };
  #answers: Frame[] = [];
  #answerBytes = 0;
  #scheduled = false;
  #scheduledSoon = false;
  /** Since when the socket has not taken what it was given; undefined: it takes more. */
  #blockedSince: number | undefined;
  #deadline: NodeJS.Timeout | undefined;
  #enforceAt = enforceEveryBytes;
  #drained: PromiseWithResolvers<void> | undefined;
  #closed = false;

  constructor(options: OutboxOptions) {
    this.#options = options;
    this.#window = options.limits.socketWindowBytes;
    this.#writer = options.writer ?? new MessageWriter(options.socket, this.#window);
    options.socket.on("drain", () => this.#drain());
  }

  /** What waits here, beside what the socket has. */
  get heldBytes(): number {
    return this.#backlog.bytes + this.#answerBytes + this.#writer.withinBytes;
  }

  *memory(): Generator<ArrayBufferLike> {
    yield* this.#backlog.memory;
    for (const { bytes } of this.#answers) yield bytes.buffer;
    const { within } = this.#writer;
    if (within !== undefined) yield within.buffer;
  }

  /** Queues a frame behind all others. */
  send(frame: Frame): void {
    if (this.#closed) return;
    if (this.#blockedSince !== undefined && this.#isFull()) return;
    this.#backlog.push(frame);
    if (this.#blockedSince !== undefined) this.#relieve();
    else if (this.#backlog.bytes >= pieceBytes) this.flush();
    else this.#schedule();
  }

  /** Queues an answer: behind all frames, or in front of them when they have to wait. */
  answer(text: Text): void {
    if (this.#closed) return;
    if (this.#blockedSince !== undefined && this.#isFull()) return;
    const message = messageOf(text);
    if (this.#blockedSince === undefined) {
      this.#backlog.push(message);
      this.#scheduleSoon();
      return;
    }
    this.#answers.push(message);
    this.#answerBytes += message.bytes.length;
    this.#enforce();
  }

  /** Undefined when more can be sent at once; else it resolves when that is so, or when nothing more is to be sent. */
  drained(): Promise<void> | undefined {
    if (this.#closed || this.heldBytes <= this.#window) return undefined;
    this.#drained ??= Promise.withResolvers();
    return this.#drained.promise;
  }

  /** Hands what waits to the socket, as far as it takes it. */
  flush(): void {
    const { socket, isOpen } = this.#options;
    if (this.#blockedSince !== undefined || this.#isIdle || !isOpen()) return;
    while (!this.#isIdle && socket.writableLength < this.#window) {
      socket.cork();
      this.#fill(this.#window);
      socket.uncork();
    }
    if (socket.writableLength >= this.#window) this.#block();
    else this.#release();
    if (this.heldBytes > this.#window) return;
    this.#drained?.resolve();
    this.#drained = undefined;
  }

  /** Hands everything to the socket that was sent; whatever comes now is lost. */
  finish(): void {
    const { socket, isOpen } = this.#options;
    if (!this.#closed && isOpen()) {
      socket.cork();
      this.#fill(Number.POSITIVE_INFINITY);
      socket.uncork();
    }
    this.close();
  }

  /** What waits is given up, and whatever comes now is lost. */
  close(): void {
    this.#closed = true;
    clearTimeout(this.#deadline);
    this.#options.budget.leave(this);
    this.#backlog.clear();
    this.#writer.abandon();
    this.#answers = [];
    this.#answerBytes = 0;
    this.#drained?.resolve();
  }

  giveUp(): void {
    this.#overflow("maxBufferedBytesAllConnections");
  }

  get #isIdle(): boolean {
    return this.#backlog.isEmpty && this.#answers.length === 0 && !this.#writer.isWithin;
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(this.#flush);
  }

  /** An answer is waited for. Others of the same turn still come before it leaves. */
  #scheduleSoon(): void {
    if (this.#scheduledSoon) return;
    this.#scheduledSoon = true;
    process.nextTick(this.#flushSoon);
  }

  /** Writes until the socket has so many bytes, or nothing waits. */
  #fill(upTo: number): void {
    const writer = this.#writer;
    const room = (): boolean => writer.waitingBytes < upTo;
    while (room()) {
      if (writer.isWithin) {
        writer.goOn();
      } else if (this.#answers.length > 0) {
        for (const message of this.#answers) writer.frame(message);
        this.#answers = [];
        this.#answerBytes = 0;
      } else {
        const frame = this.#backlog.shift();
        if (frame === undefined) break;
        if (frame.seq > 0) this.#note(frame);
        writer.frame(frame);
      }
    }
    writer.flush();
  }

  /** Most times the frame before was of the same session. */
  #note(frame: Frame): void {
    const { sessionId, seq } = this.#newest;
    if (sessionId !== frame.sessionId && seq > 0) this.#sent.set(sessionId, seq);
    this.#newest = frame;
  }

  #isFull(): boolean {
    if (this.heldBytes <= this.#options.limits.maxBufferedBytes) return false;
    this.#overflow("maxBufferedBytes");
    return true;
  }

  #relieve(): void {
    const { limits, budget } = this.#options;
    const { share } = budget;
    const before = this.#backlog.dropped;
    this.#backlog.relieve({
      mergeBytes: Math.min(limits.mergeDeltasAboveBytes, share / 2),
      dropBytes: Math.min(limits.dropDeltasAboveBytes, share),
    });
    budget.droppedDeltas += this.#backlog.dropped - before;
    this.#enforce();
  }

  #enforce(): void {
    if (this.heldBytes < this.#enforceAt) return;
    this.#enforceAt = this.heldBytes + enforceEveryBytes;
    this.#options.budget.enforce();
  }

  #block(): void {
    this.#blockedSince = performance.now();
    this.#options.budget.join(this);
    this.#deadline ??= this.#watch(this.#options.limits.slowReaderDeadlineMs);
  }

  /** One timer, which is not set anew each time that the socket has taken something. */
  #watch(afterMs: number): NodeJS.Timeout {
    const look = (): void => {
      this.#deadline = undefined;
      if (this.#blockedSince === undefined) return;
      // What the socket has does no harm, as long as nothing waits behind it.
      if (this.#isIdle) this.#blockedSince = performance.now();
      const left = this.#blockedSince + this.#options.limits.slowReaderDeadlineMs - performance.now();
      if (left > 0) this.#deadline = this.#watch(left);
      else this.#overflow("slowReaderDeadlineMs");
    };
    return setTimeout(look, afterMs).unref();
  }

  #drain(): void {
    if (this.#blockedSince === undefined || this.#closed) return;
    this.#blockedSince = undefined;
    if (this.#isIdle) this.#release();
    else this.flush();
  }

  #release(): void {
    this.#enforceAt = enforceEveryBytes;
    this.#options.budget.leave(this);
  }

  #overflow(bound: SlowReader["bound"]): void {
    if (this.#closed) return;
    const bufferedBytes = this.heldBytes;
    const { sessionId, seq } = this.#newest;
    if (seq > 0) this.#sent.set(sessionId, seq);
    this.close();
    this.#options.onOverflow({ bound, bufferedBytes, sent: this.#sent });
  }
}
