import type { Gap } from "../../protocol/event.ts";
import { defined } from "../../protocol/objects.ts";
import { type Frame, gapFrame } from "../frames/frame.ts";
import { mergeDeltas } from "../frames/merge-deltas.ts";
import { nextTurn } from "../lib/slices.ts";
import { AnswerOrder, type AnswerPlace } from "./answer-order.ts";
import { EventFilter, type Wanted } from "./event-filter.ts";
import type { LogChunk } from "./event-log.ts";

/** A receiver of a session's frames. */
export interface Subscriber {
  readonly id: string;
  readonly gone: AbortSignal;
  /** Queues a frame. Never blocks, never throws. */
  send(frame: Frame): void;
  /** Resolves when the queued frames allow more to be sent; undefined: immediately. */
  drained?(): Promise<void> | undefined;
  /** Runs `work` when it is this subscriber's turn. */
  inTurn?<T>(work: () => T): T | Promise<Awaited<T>>;
}

export interface ReadOptions extends Wanted {
  /** Consecutive deltas of a content block are merged for this long. 0: never. */
  readonly coalesceMs?: number | undefined;
}

/** The part of a log that a subscription reads. */
export interface ReadableLog {
  readonly cursor: number;
  read(after: number, maxBytes: number): LogChunk;
}

export interface SubscriptionOptions {
  readonly subscriber: Subscriber;
  readonly sessionId: string;
  readonly log: ReadableLog;
  readonly reading: ReadOptions;
  /** Receives errors without a caller: from a timer or from reading the log. */
  readonly onFault: (error: unknown) => void;
}

/** Bytes read from the log and sent at a time. */
const chunkBytes = 128 * 1024;
/** Deltas waiting to be merged are sent when they exceed this. */
const maxHeldBytes = 256 * 1024;
/** For answers in the order of notifications. */
const orderLimits = { maxWaitMs: 10_000, maxBytes: 4 * 1024 * 1024 };

/**
 * One subscriber's position in a session's log. While it lags, it reads the log at the subscriber's speed; when it is
 * live, it receives each frame immediately. It becomes live at the moment when nothing is left to read, so no frame
 * is missed.
 */
export class Subscription {
  readonly subscriber: Subscriber;
  readonly #sessionId: string;
  readonly #log: ReadableLog;
  #filter: EventFilter;
  #wishes: ReadOptions;
  #position: number;
  #isLive = false;
  /** Counts starts: a reading from an earlier start stops. */
  #begun = 0;
  #ended = false;
  #held: Frame[] = [];
  #heldBytes = 0;
  #timer: NodeJS.Timeout | undefined;
  /** Only where answers come in the order of the notifications. */
  #order: AnswerOrder | undefined;
  readonly #onFault: (error: unknown) => void;

  constructor({ subscriber, sessionId, log, reading, onFault }: SubscriptionOptions) {
    this.subscriber = subscriber;
    this.#sessionId = sessionId;
    this.#log = log;
    this.#position = log.cursor;
    this.#wishes = reading;
    this.#filter = new EventFilter(reading);
    this.#onFault = onFault;
  }

  /** Whether {@link place} gives places. */
  get ordersAnswers(): boolean {
    return this.#order !== undefined;
  }

  /** From here on, answers for which {@link place} is called come at their places. */
  orderAnswers(): void {
    this.#order ??= new AnswerOrder((frame) => this.subscriber.send(frame), orderLimits, this.#onFault);
  }

  /** The place of an answer: after what was sent before. Undefined: answers have no order. */
  place(): AnswerPlace | undefined {
    if (this.#order === undefined) return undefined;
    this.flush();
    return this.#order.place();
  }

  /** Changes the filter from here on. An absent field stays unchanged. */
  changeReading(reading: ReadOptions): void {
    this.flush();
    this.#wishes = { ...this.#wishes, ...defined(reading) };
    this.#filter = new EventFilter(this.#wishes);
  }

  /**
   * Pauses after `after`. Returns a function that resumes with retained and then live frames: after `reset` and from the
   * log's beginning, if `after` is of another log. It has no effect if the subscription was paused again.
   */
  hold(after: number): (reset?: Gap) => void {
    this.flush();
    this.#begun += 1;
    this.#isLive = false;
    this.#position = after;
    const begun = this.#begun;
    return (reset) => {
      if (this.#begun !== begun || this.#ended) return;
      if (reset !== undefined) {
        this.#position = 0;
        this.#gap(reset);
      }
      const reading = this.#readInTurn(begun);
      if (reading instanceof Promise) reading.catch(this.#onFault);
    };
  }

  /** Sends a new frame. */
  publish(frame: Frame): void {
    if (this.#isLive && this.#filter.passes(frame)) this.#send(frame);
  }

  /** Reports a jump in the numbers. A lagging subscriber reads it from the log. */
  publishGap(gap: Gap): void {
    if (this.#isLive) this.#gap(gap);
  }

  /** Sends a frame without a position in the log, after everything sent before. */
  tell(frame: Frame): void {
    this.flush();
    this.#give(frame);
  }

  /** Sends deltas that wait to be merged. */
  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#held.length === 0) return;
    const held = mergeDeltas(this.#held);
    this.#held = [];
    this.#heldBytes = 0;
    for (const frame of held) this.#give(frame);
  }

  end(): void {
    this.#ended = true;
    this.#order?.end();
    clearTimeout(this.#timer);
    this.#held = [];
  }

  #gap(gap: Gap): void {
    if (this.#filter.concerns(gap)) this.#send(gapFrame(this.#sessionId, gap));
  }

  #send(frame: Frame): void {
    const { coalesceMs = 0 } = this.#wishes;
    if (coalesceMs > 0 && frame.isDelta) {
      this.#held.push(frame);
      this.#heldBytes += frame.bytes.length;
      if (this.#heldBytes > maxHeldBytes) this.flush();
      else this.#timer ??= setTimeout(() => this.#flushLate(), coalesceMs);
      return;
    }
    if (this.#held.length > 0) this.flush();
    this.#give(frame);
  }

  #give(frame: Frame): void {
    if (this.#order === undefined) this.subscriber.send(frame);
    else this.#order.send(frame);
  }

  #readInTurn(begun: number): void | Promise<void> {
    const { subscriber } = this;
    const read = (): void => this.#read(begun);
    const isUpToDate = this.#position >= this.#log.cursor;
    return subscriber.inTurn === undefined || isUpToDate ? read() : subscriber.inTurn(read);
  }

  #read(begun: number): void {
    if (this.#ended || this.#begun !== begun) return;
    const { items, upTo } = this.#log.read(this.#position, chunkBytes);
    this.#position = upTo;
    for (const item of items) {
      if (item.kind === "gap") this.#gap(item.gap);
      else if (this.#filter.passes(item.frame)) this.#send(item.frame);
    }
    if (upTo >= this.#log.cursor) {
      this.#isLive = true;
      return;
    }
    // A long log is read over many turns of the event loop, also for a fast subscriber.
    void (this.subscriber.drained?.() ?? nextTurn()).then(() => this.#readInTurn(begun)).catch(this.#onFault);
  }

  #flushLate(): void {
    try {
      this.flush();
    } catch (error) {
      this.#onFault(error);
    }
  }
}
