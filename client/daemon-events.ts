import type { DaemonEvent, FeedPlace } from "../protocol/feed.ts";
import type { DaemonFeedGap, DaemonFeedListener } from "./daemon-feed.ts";
import type { DaemonPeer } from "./daemon-peer.ts";
import { FeedStream } from "./feed-stream.ts";
import { EventGapError } from "./local-errors.ts";

export interface DaemonEventsOptions {
  /** The last seq that the reader has: later ones are replayed. Default: the feed's current cursor. */
  readonly after?: number;
  /** The feed to which `after` belongs (`DaemonEvents.epoch`), so that a cursor of another feed is detected. */
  readonly epoch?: string;
  /**
   * Called, in the order of the events, when some of them are missing: they are no longer kept, or the cursor belongs to
   * another feed (`log_reset`). List sessions, deliveries and dialogs then; later events follow the gap. Without it the
   * stream throws `EventGapError`.
   */
  readonly onGap?: (gap: DaemonFeedGap) => void;
  /** Ends the stream at once by throwing the signal's reason. */
  readonly signal?: AbortSignal;
  /** How many events wait for a slow reader before the stream ends with `BufferOverflowError`. Default: 65536. */
  readonly maxBuffered?: number;
}

/** The events of all sessions, for one reader. It ends as `EventStream` does. */
export class DaemonEvents extends FeedStream<DaemonEvent, FeedPlace> {
  /** The feed of each event that waits for the reader. */
  readonly #epochs = new WeakMap<DaemonEvent, string>();
  #lastSeq: number | undefined;
  #epoch: string | undefined;

  /** Use `Client.daemonEvents()`. */
  constructor(peer: DaemonPeer, options: DaemonEventsOptions = {}) {
    const { signal, maxBuffered = 65_536, onGap, after, epoch } = options;
    super({ maxItems: maxBuffered, limits: `maxBuffered (${maxBuffered})`, signal });
    this.#lastSeq = after;
    this.#epoch = epoch;
    const listener: DaemonFeedListener = {
      begin: (place) => {
        this.#lastSeq ??= place.cursor;
        this.#epoch ??= place.epoch;
        this.begin(place);
      },
      gap: (gap) => {
        if (onGap === undefined) this.end(new EventGapError(gap));
        else peer.shield(() => onGap(gap));
      },
      receive: (event, epochOfEvent) => {
        this.#epochs.set(event, epochOfEvent);
        this.push(event);
      },
      end: (end) => this.feedEnded(end),
    };
    this.follow(
      () => peer.daemonFeed.join(listener, after, epoch),
      () => peer.daemonFeed.leave(listener),
    );
  }

  /** The seq of the last event that was read, at first that of the stream's beginning: the `after` to resume with. */
  get lastSeq(): number | undefined {
    return this.#lastSeq;
  }

  /** The name of the feed to which {@link lastSeq} belongs: the `epoch` to resume with. */
  get epoch(): string | undefined {
    return this.#epoch;
  }

  override async next(): Promise<IteratorResult<DaemonEvent, undefined>> {
    const result = await super.next();
    if (result.done !== true) {
      this.#lastSeq = result.value.seq;
      this.#epoch = this.#epochs.get(result.value);
    }
    return result;
  }
}
