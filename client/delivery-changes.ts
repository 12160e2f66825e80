import type { Delivery } from "../protocol/delivery.ts";
import type { DaemonPeer } from "./daemon-peer.ts";
import { FeedStream } from "./feed-stream.ts";
import type { EventGap } from "./local-errors.ts";
import { EventGapError } from "./local-errors.ts";
import type { FeedListener } from "./session-feed.ts";

export interface DeliveryChangesOptions {
  /**
   * Called when the stream continues after a lost connection and changes may have been missed: `Client.listDeliveries`
   * returns the current records. Without it the stream throws `EventGapError`.
   */
  readonly onGap?: (gap: EventGap) => void;
  /** Ends the stream at once by throwing the signal's reason. */
  readonly signal?: AbortSignal;
  /** How many records wait for a slow reader before the stream ends with `BufferOverflowError`. Default: 16384. */
  readonly maxBuffered?: number;
}

/** The changed deliveries of a session, from now on, for one reader; of all clients. It ends as `EventStream` does. */
export class DeliveryChanges extends FeedStream<Delivery> {
  /** Use `SessionHandle.deliveryChanges()`. */
  constructor(peer: DaemonPeer, sessionId: string, options: DeliveryChangesOptions = {}) {
    const { signal, maxBuffered = 16_384, onGap } = options;
    super({ maxItems: maxBuffered, limits: `maxBuffered (${maxBuffered})`, signal });
    const listener: FeedListener = {
      begin: () => this.begin(),
      gap: (gap) => {
        if (gap.onlyDeltas === true) return;
        if (onGap === undefined) this.end(new EventGapError(gap));
        else peer.shield(() => onGap(gap));
      },
      receive: ({ name, params }) => {
        if (name === "delivery/updated") this.push(params.delivery);
      },
      end: (end) => this.feedEnded(end),
    };
    this.follow(
      () => peer.joinFeed(sessionId, listener),
      () => peer.leaveFeed(sessionId, listener),
    );
  }
}
