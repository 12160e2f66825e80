import type { Logger } from "pino";
import type { FeedGap, FeedPlace } from "../../protocol/feed.ts";
import type { Covers } from "../core/session-scope.ts";
import type { Frame } from "../frames/frame.ts";
import type { FeedRow, FeedStore } from "../store/feed.ts";
import type { Place } from "./journal.ts";
import type { Subscriber } from "./subscription.ts";

export interface FollowOptions extends Place {
  readonly after: number;
  /** Which sessions it hears of. Default: all. */
  readonly covers?: Covers | undefined;
  /** Called with what begins the notifications, to be called at the right moment. Default: at once. */
  readonly whenAnswered?: ((begin: () => void) => void) | undefined;
}

interface Follower {
  readonly subscriber: Subscriber;
  readonly covers: Covers | undefined;
  readonly onGone: () => void;
  /** The last number that was read for it, and the last that it was told of: others may not be for it. */
  position: number;
  told: number;
  isReading: boolean;
}

/** What is read at a time. */
interface Chunk {
  readonly after: number;
  readonly items: readonly { readonly row: FeedRow; readonly frame: Frame }[];
}

const chunkRows = 256;
/** How long a disk that could not be read is left alone. */
const readAgainMs = 1_000;

/**
 * The feed of all sessions, as subscribers follow it. Each reads from the store behind its own cursor, as fast as it takes
 * what it gets, whether that was written long ago or just now: nothing is told before it is on disk, and what waits for a
 * slow subscriber waits in the store.
 */
export class Feed {
  readonly #store: FeedStore;
  readonly #log: Logger;
  readonly #followers = new Map<string, Follower>();
  /** What was read last: subscribers that keep up share it. */
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

  /** Sends what is after a cursor, and goes on live. Who follows already goes on from this cursor. Returns the present place. */
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

  /** Returns whether there was one to remove. */
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
        // A long feed takes many turns of the event loop, also for a peer that takes everything at once.
        await (subscriber.drained?.() ?? nextTurn());
      }
    } catch (err) {
      if (isFollowing()) this.unfollow(subscriber.id);
      this.#log.error(
        { err, subscriberId: subscriber.id },
        "a subscriber of the feed has failed, and gets nothing more",
      );
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
      // What is about a session that was not known is for those alone who may know of all.
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

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
