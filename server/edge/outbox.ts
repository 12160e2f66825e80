import type { Socket } from "node:net";
import type { Frame } from "../frames/frame.ts";
import { type Text, textBytes, wholeText } from "../rpc/answer-text.ts";
import type { Grant } from "../rpc/grant.ts";
import type { Lane } from "../rpc/turns.ts";
import { Backlog } from "./backlog.ts";
import type { BufferBudget, Memory } from "./buffer-budget.ts";
import { type FrameWriter, messageOf, WebSocketWriter } from "./frame-writer.ts";

export interface OutboxLimits {
  /** Bytes handed to the socket at a time. The rest waits here, where it can be merged, left out and overtaken. */
  readonly socketWindowBytes: number;
  readonly mergeDeltasAboveBytes: number;
  readonly dropDeltasAboveBytes: number;
  /** Waiting bytes that cannot be left out, in addition to the last frame. */
  readonly maxBufferedBytes: number;
  /** How long the peer may take to read a window while more waits. */
  readonly slowReaderDeadlineMs: number;
}

export interface OutboxOptions {
  readonly socket: Socket;
  /** Whether the connection is open, so that messages may be written. */
  readonly isOpen: () => boolean;
  readonly limits: OutboxLimits;
  readonly budget: BufferBudget;
  /** The grant of the peer's token. */
  readonly grant: Grant | undefined;
  /** The lane of the peer's token: bytes beyond one window are written in its turns. */
  readonly lane: Pick<Lane, "pass" | "count">;
  /** Default: writes WebSocket messages. */
  readonly writer?: FrameWriter;
  /** The peer reads too slowly, and the waiting frames were discarded. Called once. */
  readonly onOverflow: (why: SlowReader) => void;
}

/** Why frames for a peer were discarded. */
export interface SlowReader {
  readonly bound: "maxBufferedBytes" | "maxBufferedBytesAllConnections" | "slowReaderDeadlineMs";
  readonly bufferedBytes: number;
  /** The newest `seq` written, by session. */
  readonly sent: ReadonlyMap<string, number>;
}

/** An answer that waits. */
type Answer =
  | { readonly frame: Frame; readonly pieces?: undefined; readonly bytes: number }
  | { readonly frame?: undefined; readonly pieces: readonly Buffer[]; readonly bytes: number };

/** A backlog of this size is written at once instead of at the end of the turn of the event loop. */
const pieceBytes = 64 * 1024;

/**
 * The frames and answers on their way to one connection. The frames of one turn of the event loop leave in one system
 * call, because a call costs far more than a frame. While the peer reads, frames pass straight through; otherwise they
 * wait in the {@link Backlog}. Answers overtake waiting frames; frames keep their order.
 */
export class Outbox {
  readonly #options: OutboxOptions;
  readonly #writer: FrameWriter;
  readonly #window: number;
  readonly #backlog = new Backlog();
  readonly #flush = (): void => {
    this.#scheduled = false;
    this.#options.lane.count(() => this.flush());
  };
  readonly #flushSoon = (): void => {
    this.#scheduledSoon = false;
    this.#options.lane.count(() => this.flush());
  };
  readonly #sent = new Map<string, number>();
  /** The newest numbered frame written. Its session is not in {@link #sent} yet. */
  #newest: Pick<Frame, "sessionId" | "seq"> = { sessionId: "", seq: 0 };
  #answers: Answer[] = [];
  /** How many of {@link #answers} are written. */
  #answersDone = 0;
  #answerBytes = 0;
  /** The rest is written in the token's next turn. */
  #waitsForTurn = false;
  #scheduled = false;
  #scheduledSoon = false;
  /** Since when the socket's buffer is full; undefined: it accepts more. */
  #blockedSince: number | undefined;
  #deadline: NodeJS.Timeout | undefined;
  /** Held bytes at the last enforcement of the budget. */
  #addedUpBytes = 0;
  #drained: PromiseWithResolvers<void> | undefined;
  /** What waits for the peer outside of this outbox. */
  #elsewhere: Memory = { byteLength: 0 };
  #closed = false;

  constructor(options: OutboxOptions) {
    this.#options = options;
    this.#window = options.limits.socketWindowBytes;
    this.#writer = options.writer ?? new WebSocketWriter(options.socket, this.#window);
    options.socket.on("drain", () => this.#drain());
  }

  get grant(): Grant | undefined {
    return this.#options.grant;
  }

  /** Waiting bytes, without those in the socket's buffer. */
  get heldBytes(): number {
    return this.#waitingBytes + this.#elsewhere.byteLength;
  }

  *memory(): Generator<Memory> {
    yield this.#elsewhere;
    yield* this.#backlog.memory;
    for (const { pieces, frame } of this.#answers.slice(this.#answersDone))
      for (const { buffer } of pieces ?? [frame.bytes]) yield buffer;
    for (const { buffer } of this.#writer.within ?? []) yield buffer;
  }

  /** Counts so many bytes that wait for the peer outside of this outbox: the budget counts them as if they waited here. */
  holdElsewhere(byteLength: number): void {
    if (this.#closed) return;
    this.#elsewhere = { byteLength };
    if (byteLength > 0) {
      this.#options.budget.join(this);
      this.#enforce();
    } else if (this.#isIdle) this.#release();
  }

  /** Queues a frame after all others. */
  send(frame: Frame): void {
    if (this.#closed) return;
    if (this.#isHeldUp && this.#isFull()) return;
    this.#backlog.push(frame);
    if (this.#isHeldUp) this.#relieve();
    else if (this.#backlog.bytes >= pieceBytes) this.flush();
    else this.#schedule();
  }

  /** Queues an answer: after the frames, or before them if they have to wait. */
  answer(text: Text): void {
    if (this.#closed) return;
    if (this.#isHeldUp && this.#isFull()) return;
    const bytes = textBytes(text);
    if (typeof text !== "string" && bytes > this.#window) {
      // Earlier frames leave first, unless they have to wait.
      this.flush();
      this.#answers.push({ pieces: text, bytes });
      if (!this.#isHeldUp) this.#waitForTurn();
    } else {
      const frame = messageOf(wholeText(text));
      if (!this.#isHeldUp) {
        this.#backlog.push(frame);
        this.#scheduleSoon();
        return;
      }
      this.#answers.push({ frame, bytes });
    }
    this.#answerBytes += bytes;
    this.#enforce();
  }

  /** Returns undefined if more can be sent at once; otherwise a promise that resolves when it can, or when the outbox closes. */
  drained(): Promise<void> | undefined {
    if (this.#closed || this.#waitingBytes <= this.#window) return undefined;
    this.#drained ??= Promise.withResolvers();
    return this.#drained.promise;
  }

  /** Hands waiting bytes to the socket: one window at once, the rest in the token's turns. */
  flush(): void {
    const { socket, isOpen } = this.#options;
    if (this.#isHeldUp || this.#isIdle || !isOpen()) return;
    socket.cork();
    this.#fill(this.#window);
    socket.uncork();
    if (socket.writableLength >= this.#window) this.#block();
    else if (this.#isIdle) this.#release();
    else this.#waitForTurn();
    if (this.#waitingBytes > this.#window) return;
    this.#drained?.resolve();
    this.#drained = undefined;
  }

  /** Hands everything to the socket and closes: later frames are discarded. */
  finish(): void {
    const { socket, isOpen } = this.#options;
    if (!this.#closed && isOpen()) {
      socket.cork();
      this.#fill(Number.POSITIVE_INFINITY);
      socket.uncork();
    }
    this.close();
  }

  /** Discards waiting and later frames. */
  close(): void {
    this.#closed = true;
    clearTimeout(this.#deadline);
    this.#options.budget.leave(this);
    this.#backlog.clear();
    this.#writer.abandon();
    this.#answers = [];
    this.#answersDone = 0;
    this.#answerBytes = 0;
    this.#elsewhere = { byteLength: 0 };
    this.#drained?.resolve();
  }

  giveUp(): void {
    this.#overflow("maxBufferedBytesAllConnections");
  }

  /** Whether frames have to wait: the socket's buffer is full, or other tokens have their turn. */
  get #isHeldUp(): boolean {
    return this.#blockedSince !== undefined || this.#waitsForTurn;
  }

  get #waitingBytes(): number {
    return this.#backlog.bytes + this.#answerBytes + this.#writer.withinBytes;
  }

  get #isIdle(): boolean {
    return this.#backlog.isEmpty && this.#answers.length === 0 && !this.#writer.isWithin;
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(this.#flush);
  }

  /** A caller waits for an answer, so it leaves earlier than a frame, with the other answers of the same tick. */
  #scheduleSoon(): void {
    if (this.#scheduledSoon) return;
    this.#scheduledSoon = true;
    process.nextTick(this.#flushSoon);
  }

  /** Writes until the socket has `upTo` bytes or nothing waits. */
  #fill(upTo: number): void {
    const writer = this.#writer;
    const room = (): boolean => writer.waitingBytes < upTo;
    while (room()) {
      if (writer.isWithin) {
        writer.goOn();
      } else if (this.#answers.length > 0) {
        this.#nextAnswer();
      } else {
        const frame = this.#backlog.shift();
        if (frame === undefined) break;
        if (frame.seq > 0) this.#note(frame);
        writer.frame(frame);
      }
    }
    writer.flush();
  }

  /** Writes one answer: a large one is written in parts, and nothing may come between them. */
  #nextAnswer(): void {
    const answer = this.#answers[this.#answersDone++];
    if (answer === undefined) return;
    this.#answerBytes -= answer.bytes;
    if (this.#answersDone === this.#answers.length) {
      this.#answers = [];
      this.#answersDone = 0;
    }
    if (answer.pieces === undefined) this.#writer.frame(answer.frame);
    else this.#writer.message(answer.pieces);
  }

  /** Consecutive frames are usually of the same session, so the map is updated only when the session changes. */
  #note(frame: Frame): void {
    const { sessionId, seq } = this.#newest;
    if (sessionId !== frame.sessionId && seq > 0) this.#sent.set(sessionId, seq);
    this.#newest = frame;
  }

  #isFull(): boolean {
    if (this.#waitingBytes <= this.#options.limits.maxBufferedBytes) return false;
    this.#overflow("maxBufferedBytes");
    return true;
  }

  #relieve(): void {
    const { limits, budget } = this.#options;
    const share = budget.shareOf(this);
    const before = this.#backlog.dropped;
    this.#backlog.shrink({
      mergeBytes: Math.min(limits.mergeDeltasAboveBytes, share / 2),
      dropBytes: Math.min(limits.dropDeltasAboveBytes, share),
    });
    budget.droppedDeltas += this.#backlog.dropped - before;
    this.#enforce();
  }

  #enforce(): void {
    const { budget } = this.#options;
    if (this.heldBytes - this.#addedUpBytes < budget.stepBytes) return;
    this.#addedUpBytes = this.heldBytes;
    budget.enforce();
  }

  #block(): void {
    this.#blockedSince = performance.now();
    this.#options.budget.join(this);
    this.#deadline ??= this.#watch(this.#options.limits.slowReaderDeadlineMs);
  }

  /** Uses one timer, because resetting it with each drained write would cost more. */
  #watch(afterMs: number): NodeJS.Timeout {
    const look = (): void => {
      this.#deadline = undefined;
      if (this.#blockedSince === undefined) return;
      // A full socket is harmless while nothing else waits.
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
    else this.#waitForTurn();
  }

  #waitForTurn(): void {
    this.#waitsForTurn = true;
    this.#options.budget.join(this);
    void this.#options.lane.pass(() => {
      this.#waitsForTurn = false;
      this.flush();
    });
  }

  #release(): void {
    if (this.#elsewhere.byteLength > 0) return;
    this.#addedUpBytes = 0;
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
