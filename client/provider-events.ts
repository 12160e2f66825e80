import type { RequestDelivered, RequestFailed, RequestPrepared } from "../protocol/provider.ts";
import { covers, type ProviderLevel } from "../protocol/provider-level.ts";
import type { DaemonPeer } from "./daemon-peer.ts";
import { frameLimits } from "./event-stream.ts";
import { FeedStream } from "./feed-stream.ts";
import type { FeedListener, RequestNotification } from "./session-feed.ts";

/** A step of a request to the model's provider. `prepared` comes first, then one of the others with the same `requestId`. */
export type ProviderEvent =
  | ({ readonly kind: "prepared" } & RequestPrepared)
  | ({ readonly kind: "delivered" } & RequestDelivered)
  | ({ readonly kind: "failed" } & RequestFailed);

export interface ProviderEventsOptions {
  /** `messages` and `payload` add these to each `prepared`. Default: summary. */
  readonly level?: Exclude<ProviderLevel, "off">;
  /** Ends the stream at once by throwing the signal's reason. */
  readonly signal?: AbortSignal;
  /** How many events wait for a slow reader before the stream ends with `BufferOverflowError`. Default: 4096. */
  readonly maxBufferedEvents?: number;
  /** The same in UTF-16 units of their frames. Default: 67108864. */
  readonly maxBufferedChars?: number;
}

/**
 * A session's requests to its model's provider, from now on, for one reader. They are live only: events during a lost
 * connection are missing, so a request that was prepared before it may have no end. It ends as `EventStream` does.
 */
export class ProviderEvents extends FeedStream<ProviderEvent> {
  /** The request of the last `prepared` whose end is still missing. */
  #open: string | undefined;

  /** Use `SessionHandle.providerEvents()`. */
  constructor(peer: DaemonPeer, sessionId: string, options: ProviderEventsOptions = {}) {
    const { level = "summary", signal } = options;
    super({ ...frameLimits(options, 4_096), signal });
    const listener: FeedListener = {
      provider: level,
      begin: () => this.begin(),
      gap: () => {},
      receive: () => {},
      request: (notification, size) => {
        const event = this.#eventOf(notification, level);
        if (event !== undefined) this.push(event, size);
      },
      end: (end) => this.feedEnded(end),
    };
    this.follow(
      () => peer.joinFeed(sessionId, listener),
      () => peer.leaveFeed(sessionId, listener),
    );
  }

  /** The event at this reader's level: another reader of the connection can have asked for more, and earlier. */
  #eventOf({ name, params }: RequestNotification, level: ProviderLevel): ProviderEvent | undefined {
    if (name === "provider/requestPrepared") {
      this.#open = params.requestId;
      return { kind: "prepared", ...upTo(level, params) };
    }
    if (this.#open !== params.requestId) return undefined;
    this.#open = undefined;
    return name === "provider/requestDelivered" ? { kind: "delivered", ...params } : { kind: "failed", ...params };
  }
}

/** The params without what a higher level adds. */
function upTo(level: ProviderLevel, params: RequestPrepared): RequestPrepared {
  if (covers(level, "payload")) return params;
  const { payload: _payload, ...withMessages } = params;
  if (covers(level, "messages")) return withMessages;
  const { messages: _messages, messagesBytes: _bytes, truncated: _truncated, ...summary } = withMessages;
  return summary;
}
