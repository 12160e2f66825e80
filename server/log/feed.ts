import type { Logger } from "pino";
import type { FeedGap, FeedPlace } from "../../protocol/feed.ts";
import type { Covers } from "../core/session-scope.ts";
import type { Frame } from "../frames/frame.ts";
import { nextTurn } from "../lib/slices.ts";
import type { FeedRow, FeedStore } from "../store/feed.ts";
import type { Place } from "./journal.ts";
import type { Subscriber } from "./subscription.ts";

export interface FollowOptions extends Place {
  readonly after: number;
  /** Sessions that the subscriber may see. Default: all. */
  readonly covers?: Covers | undefined;
  /** Receives a function that starts the notifications; calls it at the right moment. Default: immediately. */
  readonly whenAnswered?: ((begin: () => void) => void) | undefined;
}

interface Follower {
  readonly subscriber: Subscriber;
  readonly covers: Covers | undefined;
  readonly onGone: () => void;
  /**
   * The last number read for the subscriber, and the last number sent to it. They differ where rows are for other
   * subscribers.
   */
  position: number;
  told: number;
  isReading: boolean;
}

/** One read. */
interface Chunk {
  readonly after: number;
  readonly items: readonly { readonly row: FeedRow; readonly frame: Frame }[];
}

const chunkRows = 256;
/** How long a disk that could not be read is left alone. */
const readAgainMs = 1_000;

/**
 * The feed of all sessions. Each subscriber reads the store from its own cursor at its own speed, for old and new
 * rows alike: a row is sent only after it is on disk, and rows for a slow subscriber wait in the store.
 */
export class Feed {
  readonly #store: FeedStore;
  readonly #log: Logger;
  readonly #followers = new Map<string, Follower>();
  /** The last read, shared by subscribers that keep up. */
  #chunk: Chunk | undefined;
  #look: NodeJS.Immediate | undefined;
  #readAgain: NodeJS.Timeout | undefined;

  constructor(store: FeedStore, log: Logger) {
    this.#store = store;
    this.#log = log;
    store.onAdded(() => {
      this.#chunk = undefined;
      if (this.#followers.size > 0) this.#look ??= setImmediate(() => this.#tell());
    });
  }

  get place(): FeedPlace {
    return { cursor: this.#store.cursor, epoch: this.#store.epoch };
  }

  /**
   * Sends everything after a cursor, then continues live. A subscriber that follows already continues from this
   * cursor. Returns the current place.
   */
  follow(subscriber: Subscriber, { after, epoch, covers, whenAnswered }: FollowOptions): FeedPlace {
    const { place } = this;
    const isReset = after > place.cursor || (epoch !== undefined && epoch !== place.epoch);
    const onGone = (): void => void this.unfollow(subscriber.id);
    const position = isReset ? 0 : after;
    const follower: Follower = { subscriber, covers, onGone, position, told: position, isReading: false };
    const begin = (): void => {
      this.unfollow(subscriber.id);
      if (subscriber.gone.aborted) return;
      subscriber.gone.addEventListener("abort", onGone, { once: true });
      this.#followers.set(subscriber.id, follower);
      if (isReset) subscriber.send(gapFrame({ from: 0, to: after, reason: "log_reset" }));
      void this.#read(follower);
    };
    if (whenAnswered === undefined) begin();
    else whenAnswered(begin);
    return place;
  }

  /** Returns whether the subscriber was following. */
  unfollow(subscriberId: string): boolean {
    const follower = this.#followers.get(subscriberId);
    follower?.subscriber.gone.removeEventListener("abort", follower.onGone);
    return this.#followers.delete(subscriberId);
  }

  #tell(): void {
    this.#look = undefined;
    for (const follower of this.#followers.values()) void this.#read(follower);
  }

  async #read(follower: Follower): Promise<void> {
    const { subscriber } = follower;
    const isFollowing = (): boolean => this.#followers.get(subscriber.id) === follower;
    if (follower.isReading) return;
    follower.isReading = true;
    try {
      while (isFollowing() && follower.position < this.#store.cursor) {
        const send = (): boolean => {
          const chunk = isFollowing() ? this.#next(follower.position) : undefined;
          // Without a row there is nothing to go on from, and the next event has it read again.
          if (chunk === undefined || chunk.items.length === 0) return false;
          this.#send(follower, chunk);
          return true;
        };
        if (!(subscriber.inTurn === undefined ? send() : await subscriber.inTurn(send))) return;
        // A long feed is read over many turns of the event loop, also for a fast subscriber.
        await (subscriber.drained?.() ?? nextTurn());
      }
    } catch (err) {
      if (isFollowing()) this.unfollow(subscriber.id);
      this.#log.error({ err, subscriberId: subscriber.id }, "a feed subscriber failed and was removed");
    } finally {
      follower.isReading = false;
    }
  }

  /** Undefined where the store cannot be read now: the followers go on from where they are when it can. */
  #next(after: number): Chunk | undefined {
    if (this.#chunk?.after === after) return this.#chunk;
    let rows: readonly FeedRow[];
    try {
      rows = this.#store.read(after, chunkRows);
    } catch (err) {
      if (this.#readAgain === undefined) this.#log.error({ err }, "the feed cannot be read; it is tried again");
      this.#readAgain ??= setTimeout(() => {
        this.#readAgain = undefined;
        this.#tell();
      }, readAgainMs).unref();
      return undefined;
    }
    this.#chunk = { after, items: rows.map((row) => ({ row, frame: eventFrame(row) })) };
    return this.#chunk;
  }

  #send(follower: Follower, { items }: Chunk): void {
    const { subscriber, covers } = follower;
    for (const { row, frame } of items) {
      const { seq } = row.event;
      if (seq > follower.position + 1) {
        subscriber.send(gapFrame({ from: follower.told + 1, to: seq - 1, reason: "not_retained" }));
        follower.told = seq - 1;
      }
      follower.position = seq;
      // A row about an unknown session is visible only to subscribers that may see all sessions.
      if (covers !== undefined && (row.scope === undefined || !covers(row.scope))) continue;
      subscriber.send(follower.told === seq - 1 ? frame : eventFrame(row, follower.told));
      follower.told = seq;
    }
  }
}

function eventFrame({ event: { seq, ...event } }: FeedRow, after = seq - 1): Frame {
  return frameOf("daemon/event", { seq, after, ...event }, { seq });
}

function gapFrame(gap: FeedGap): Frame {
  return frameOf("daemon/gap", gap, { seq: gap.to, firstSeq: gap.from });
}

function frameOf(method: string, params: object, place: Pick<Frame, "seq" | "firstSeq">): Frame {
  const bytes = Buffer.from(JSON.stringify({ jsonrpc: "2.0", method, params }));
  return { bytes, sessionId: "", isDelta: false, ...place };
}
