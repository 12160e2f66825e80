import type { Delivery } from "../protocol/delivery.ts";
import { isTerminal } from "../protocol/delivery-progress.ts";
import { AsyncBuffer } from "./async-buffer.ts";
import type { DaemonPeer } from "./daemon-peer.ts";
import { type KnownDelivery, supersedes } from "./known-delivery.ts";
import { BufferOverflowError } from "./local-errors.ts";
import type { FeedEnd, FeedListener } from "./session-feed.ts";

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
 * One delivery's records as they change, over lost connections too. Ends behind the last one, or when the session or the
 * client is closed; throws what the push was refused with, what ended the client for good, or the signal's reason.
 */
export class DeliveryUpdates implements AsyncIterableIterator<Delivery, undefined> {
  readonly #options: DeliveryUpdatesOptions;
  readonly #buffer = new AsyncBuffer<Delivery>({ maxItems: maxBuffered, maxSize: Number.POSITIVE_INFINITY });
  readonly #listener: FeedListener;
  readonly #unwatch: () => void;
  #newest: Delivery | undefined;

  constructor(options: DeliveryUpdatesOptions) {
    this.#options = options;
    const { peer, sessionId, known, accepted, signal } = options;
    const subscribed = Promise.withResolvers<void>();
    this.#listener = {
      begin: () => subscribed.resolve(),
      resume: () => this.#look(),
      gap: ({ onlyDeltas }) => {
        if (onlyDeltas !== true) this.#look();
      },
      // Notifications reach `known` before they reach any feed.
      receive: () => {},
      end: (end) => {
        subscribed.resolve();
        this.#onEnd(end);
      },
    };
    this.#unwatch = known.watch((delivery) => this.#add(delivery));
    if (signal?.aborted === true) {
      this.#abort();
      return;
    }
    signal?.addEventListener("abort", this.#abort, { once: true });
    if (known.current !== undefined) this.#add(known.current);
    if (this.#buffer.ended) return;
    peer.joinFeed(sessionId, this.#listener);
    // What happened between the push's answer and the subscription is caught up on with one more look.
    Promise.all([accepted, subscribed.promise]).then(
      () => this.#look(),
      (error: unknown) => this.#fail(error),
    );
  }

  next(): Promise<IteratorResult<Delivery, undefined>> {
    return this.#buffer.next();
  }

  async return(): Promise<IteratorReturnResult<undefined>> {
    this.#stop(() => this.#buffer.discard());
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.return();
  }

  readonly #abort = (): void => {
    this.#stop(() => this.#buffer.discard(this.#options.signal?.reason));
  };

  #add(delivery: Delivery): void {
    if (this.#newest !== undefined && !supersedes(delivery, this.#newest)) return;
    const changed = this.#newest === undefined || hasChanged(this.#newest, delivery);
    this.#newest = delivery;
    if (changed && !this.#buffer.push(delivery)) {
      this.#stop(() => this.#buffer.end(new BufferOverflowError(`${maxBuffered} updates`)));
    } else if (isTerminal(delivery)) {
      this.#stop(() => this.#buffer.end());
    }
  }

  /** Asks for the record as it is now: something may have been missed. */
  #look(): void {
    if (this.#buffer.ended) return;
    this.#options.get().catch((error: unknown) => this.#fail(error));
  }

  #fail(error: unknown): void {
    this.#stop(() => this.#buffer.end(error));
  }

  #onEnd(end: FeedEnd): void {
    this.#stop(() => this.#buffer.end(end.kind === "failed" ? end.error : undefined));
  }

  #stop(how: () => void): void {
    const { peer, sessionId, signal } = this.#options;
    signal?.removeEventListener("abort", this.#abort);
    this.#unwatch();
    peer.leaveFeed(sessionId, this.#listener);
    how();
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
