import type { Delivery } from "../protocol/delivery.ts";
import { isTerminal } from "../protocol/delivery-progress.ts";
import type { DaemonPeer } from "./daemon-peer.ts";
import { FeedStream } from "./feed-stream.ts";
import { type KnownDelivery, supersedes } from "./known-delivery.ts";
import type { FeedListener } from "./session-feed.ts";

export interface DeliveryUpdatesOptions {
  readonly peer: DaemonPeer;
  readonly sessionId: string;
  readonly known: KnownDelivery;
  readonly accepted: Promise<Delivery>;
  readonly get: () => Promise<Delivery>;
  readonly signal: AbortSignal | undefined;
}

const maxBuffered = 1_024;

/**
 * One delivery's records as they change, over lost connections too. Ends after the last one, or when the session or the
 * client is closed; throws the error with which the push was refused or the client ended, or the signal's reason.
 */
export class DeliveryUpdates extends FeedStream<Delivery> {
  readonly #get: () => Promise<Delivery>;
  #newest: Delivery | undefined;

  constructor({ peer, sessionId, known, accepted, get, signal }: DeliveryUpdatesOptions) {
    super({ maxItems: maxBuffered, limits: `${maxBuffered} updates`, signal });
    this.#get = get;
    const listener: FeedListener = {
      begin: () => this.begin(),
      resume: () => this.#refresh(),
      gap: ({ onlyDeltas }) => {
        if (onlyDeltas !== true) this.#refresh();
      },
      // Notifications reach `known` before they reach any feed.
      receive: () => {},
      end: (end) => this.feedEnded(end),
    };
    const unwatch = known.watch((delivery) => this.#add(delivery));
    this.follow(
      () => {
        if (known.current !== undefined) this.#add(known.current);
        if (this.ended) return;
        peer.joinFeed(sessionId, listener);
        // The record may have changed between the push's answer and the subscription.
        Promise.all([accepted, this.ready]).then(
          () => this.#refresh(),
          (error: unknown) => this.end(error),
        );
      },
      () => {
        unwatch();
        peer.leaveFeed(sessionId, listener);
      },
    );
  }

  #add(delivery: Delivery): void {
    if (this.#newest !== undefined && !supersedes(delivery, this.#newest)) return;
    const changed = this.#newest === undefined || hasChanged(this.#newest, delivery);
    this.#newest = delivery;
    if (changed && !this.push(delivery)) return;
    if (isTerminal(delivery)) this.end();
  }

  /** Asks for the current record: a change may have been missed. */
  #refresh(): void {
    if (this.ended) return;
    this.#get().catch((error: unknown) => this.end(error));
  }
}

/** The same record can arrive twice: as an answer and as a notification. */
function hasChanged(before: Delivery, after: Delivery): boolean {
  return (
    before.state !== after.state ||
    before.reason?.code !== after.reason?.code ||
    before.updatedAt !== after.updatedAt ||
    before.history.length !== after.history.length ||
    before.attempts.length !== after.attempts.length
  );
}
