import type { Gap } from "../../protocol/event.ts";
import { type Frame, gapFrame } from "../frames/frame.ts";
import { mergeDeltas } from "../frames/merge-deltas.ts";
import { EventFilter, type Wanted } from "./event-filter.ts";
import type { LogChunk } from "./event-log.ts";

/** Whoever gets a session's frames. */
export interface Subscriber {
  readonly id: string;
  readonly gone: AbortSignal;
  /** Queues a frame. Never blocks, never throws. */
  send(frame: Frame): void;
  /** Resolves when what lies ready can be sent on; undefined: it can be at once. */
  drained?(): Promise<void> | undefined;
  /** Does work for it when it is its turn. */
  inTurn?<T>(work: () => T): T | Promise<Awaited<T>>;
}

export interface Wishes extends Wanted {
  /** Consecutive deltas of a content block are merged for so long. 0: not at all. */
  readonly coalesceMs?: number | undefined;
}

/** What a subscription reads. */
export interface ReadableLog {
  readonly cursor: number;
  read(after: number, maxBytes: number): LogChunk;
}

export interface SubscriptionOptions {
  readonly subscriber: Subscriber;
  readonly sessionId: string;
  readonly log: ReadableLog;
  readonly wishes: Wishes;
  /** Called with what was thrown where nobody waits: behind a timer, or on the way through the log. */
  readonly onFault: (error: unknown) => void;
}

/** What is read from the log and sent at a time, when much lies ready. */
const chunkBytes = 128 * 1024;
/** What waits to be merged is sent when there is so much of it. */
const maxHeldBytes = 256 * 1024;

/**
 * One subscriber's way through a session's log. It is behind, and then reads from the log as fast as the subscriber
 * takes it; or it is live, and gets each frame as it is made. It becomes live in the moment in which nothing is left to
 * be read, so there is nothing between.
 */
export class Subscription {
  readonly subscriber: Subscriber;
  readonly #sessionId: string;
  readonly #log: ReadableLog;
  #filter: EventFilter;
  #wishes: Wishes;
  #position: number;
  #isLive = false;
  /** Counts the times that it was begun: an earlier reading goes no further. */
  #begun = 0;
  #ended = false;
  #held: Frame[] = [];
  #heldBytes = 0;
  #timer: NodeJS.Timeout | undefined;
  readonly #onFault: (error: unknown) => void;

  constructor({ subscriber, sessionId, log, wishes, onFault }: SubscriptionOptions) {
    this.subscriber = subscriber;
    this.#sessionId = sessionId;
    this.#log = log;
    this.#position = log.cursor;
    this.#wishes = wishes;
    this.#filter = new EventFilter(wishes);
    this.#onFault = onFault;
  }

  /** Changes what it wants from here on. What is not given stays as it is. */
  wish(wishes: Wishes): void {
    this.flush();
    const given = Object.entries(wishes).filter(([, value]) => value !== undefined);
    this.#wishes = { ...this.#wishes, ...Object.fromEntries(given) };
    this.#filter = new EventFilter(this.#wishes);
  }

  /**
   * Stops behind `after`. Gives what lets it go on from there, with what is kept and then live; a gap is told first. That
   * does nothing if it was stopped anew meanwhile.
   */
  hold(after: number): (gap?: Gap) => void {
    this.flush();
    this.#begun += 1;
    this.#isLive = false;
    this.#position = after;
    const begun = this.#begun;
    return (gap) => {
      if (this.#begun !== begun || this.#ended) return;
      if (gap !== undefined) this.#gap(gap);
      const reading = this.#readInTurn(begun);
      if (reading instanceof Promise) reading.catch(this.#onFault);
    };
  }

  /** A frame that was just made. */
  publish(frame: Frame): void {
    if (this.#isLive && this.#filter.passes(frame)) this.#send(frame);
  }

  /** The numbers have jumped. Who is behind will read it in the log. */
  publishGap(gap: Gap): void {
    if (this.#isLive) this.#gap(gap);
  }

  /** A frame without a place in the log, behind everything that was sent before. */
  tell(frame: Frame): void {
    this.flush();
    this.subscriber.send(frame);
  }

  /** Sends what waits to be merged. */
  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#held.length === 0) return;
    const held = mergeDeltas(this.#held);
    this.#held = [];
    this.#heldBytes = 0;
    for (const frame of held) this.subscriber.send(frame);
  }

  end(): void {
    this.#ended = true;
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
    this.subscriber.send(frame);
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
    // A long log takes many turns of the event loop, also for a peer that takes everything at once.
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

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
