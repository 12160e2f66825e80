import type { DaemonPeer } from "./daemon-peer.ts";
import { FeedStream } from "./feed-stream.ts";
import type { EventGap } from "./local-errors.ts";
import { EventGapError } from "./local-errors.ts";
import type { SessionEnvelope } from "./pi-events.ts";
import type { FeedListener, FeedStart } from "./session-feed.ts";

export interface EventsOptions {
  /** The last seq that the reader has: later ones are replayed. Default: the session's current cursor. */
  readonly after?: number;
  /** The log to which `after` belongs (`EventStream.epoch`), so that a cursor of another log is detected. */
  readonly epoch?: string;
  /**
   * Called, in the order of the events, when some of them are missing: they are no longer kept, the daemon was killed, the
   * stream was read too slowly, or the daemon did not say why (`unreported`). Later events follow the gap.
   * Without it the stream throws `EventGapError`.
   */
  readonly onGap?: (gap: EventGap) => void;
  /** Ends the stream at once by throwing the signal's reason. */
  readonly signal?: AbortSignal;
  /** How many envelopes wait for a slow reader before the stream ends with `BufferOverflowError`. Default: 65536. */
  readonly maxBufferedEvents?: number;
  /** The same in UTF-16 units of their frames. Default: 67108864. */
  readonly maxBufferedChars?: number;
}

/** The limits of a stream of frames, with their defaults. */
export function frameLimits(
  { maxBufferedEvents, maxBufferedChars = 67_108_864 }: Pick<EventsOptions, "maxBufferedEvents" | "maxBufferedChars">,
  defaultEvents: number,
): { readonly maxItems: number; readonly maxSize: number; readonly limits: string } {
  const maxItems = maxBufferedEvents ?? defaultEvents;
  const limits = `maxBufferedEvents (${maxItems}) or maxBufferedChars (${maxBufferedChars})`;
  return { maxItems, maxSize: maxBufferedChars, limits };
}

/**
 * A session's events from one moment on, for one reader.
 *
 * The constructor requests the subscription, so the stream has everything that later calls cause. After a lost connection
 * it continues after the last event it has, with each envelope once and in order, or reports the gap; a stream that was
 * not `ready` begins when the next connection is open.
 *
 * It ends without an error when the session or the client is closed. It throws the error that ended the client
 * (`ConnectionClosedError` without `reconnect`), `BufferOverflowError` when it is read too slowly, `EventGapError` at a
 * gap without `onGap`, and the daemon's `WireError` when the subscription is refused. Except after an abort, the reader
 * first gets what is buffered.
 */
export class EventStream extends FeedStream<SessionEnvelope, FeedStart> {
  #lastSeq: number | undefined;
  #epoch: string | undefined;

  /** Use `SessionHandle.events()`. */
  constructor(peer: DaemonPeer, sessionId: string, options: EventsOptions = {}) {
    const { after, epoch, onGap, signal } = options;
    super({ ...frameLimits(options, 65_536), signal });
    this.#lastSeq = after;
    let newest = after ?? 0;
    const listener: FeedListener = {
      begin: (start) => {
        newest = after ?? start.cursor;
        this.#epoch = start.epoch;
        this.begin(start);
      },
      resume: (start) => {
        this.#epoch = start.epoch;
      },
      gap: (gap) => {
        if (onGap === undefined) this.end(new EventGapError(gap));
        else peer.shield(() => onGap(gap));
      },
      receive: ({ name, params }, frame) => {
        if (name === "session/event" && this.push(params, frame.length, newest)) newest = params.seq;
      },
      end: (end) => this.feedEnded(end),
    };
    this.follow(
      () => peer.joinFeed(sessionId, listener, after, epoch),
      () => peer.leaveFeed(sessionId, listener),
    );
  }

  /** The seq of the last envelope that was read: the `after` to resume with. Undefined before the first. */
  get lastSeq(): number | undefined {
    return this.#lastSeq;
  }

  /** The name of the log to which {@link lastSeq} belongs: the `epoch` to resume with. */
  get epoch(): string | undefined {
    return this.#epoch;
  }

  override async next(): Promise<IteratorResult<SessionEnvelope, undefined>> {
    const result = await super.next();
    if (result.done !== true) this.#lastSeq = result.value.seq;
    return result;
  }
}
