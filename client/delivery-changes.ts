import type { Delivery } from "../protocol/delivery.ts";
import { AsyncBuffer } from "./async-buffer.ts";
import type { DaemonPeer } from "./daemon-peer.ts";
import { BufferOverflowError, EventGapError } from "./local-errors.ts";
import type { EventGap, FeedEnd, FeedListener } from "./session-feed.ts";

export interface DeliveryChangesOptions {
  /**
   * Called when the stream goes on after the connection was lost, if changes may have been missed meanwhile:
   * `Client.listDeliveries` has the records as they are. Without it the stream throws `EventGapError` then.
   */
  readonly onGap?: (gap: EventGap) => void;
  /** Ends the stream at once by throwing the signal's reason. */
  readonly signal?: AbortSignal;
  /** How many records wait for a slow reader before the stream ends with `BufferOverflowError`. Default: 16384. */
  readonly maxBuffered?: number;
}

/**
 * A session's deliveries as they change, from now on, for one reader: whoever pushed them. It ends as `EventStream` does.
 */
export class DeliveryChanges implements AsyncIterableIterator<Delivery, undefined> {
  readonly #buffer: AsyncBuffer<Delivery>;
  readonly #ready = Promise.withResolvers<void>();
  readonly #leave: () => void;
  readonly #signal: AbortSignal | undefined;

  /** Use `SessionHandle.deliveryChanges()`. */
  constructor(peer: DaemonPeer, sessionId: string, options: DeliveryChangesOptions = {}) {
    const { signal, maxBuffered = 16_384, onGap } = options;
    this.#buffer = new AsyncBuffer({ maxItems: maxBuffered, maxSize: Number.POSITIVE_INFINITY });
    this.#signal = signal;
    this.#ready.promise.catch(() => {});
    const listener: FeedListener = {
      begin: () => this.#ready.resolve(),
      resume: () => {},
      gap: (gap) => {
        if (gap.onlyDeltas === true) return;
        if (onGap === undefined) this.#stop(() => this.#buffer.end(new EventGapError(gap)));
        else peer.shield(() => onGap(gap));
      },
      receive: ({ name, params }) => {
        if (name !== "delivery/updated" || this.#buffer.push(params.delivery)) return;
        this.#stop(() => this.#buffer.end(new BufferOverflowError(`maxBuffered (${maxBuffered})`)));
      },
      end: (end) => this.#onEnd(end),
    };
    this.#leave = () => peer.leaveFeed(sessionId, listener);
    if (signal?.aborted === true) {
      this.#onEnd({ kind: "failed", error: signal.reason });
      return;
    }
    signal?.addEventListener("abort", this.#abort, { once: true });
    peer.joinFeed(sessionId, listener);
  }

  /** Resolves when the daemon has confirmed the subscription: every later change is told. */
  get ready(): Promise<void> {
    return this.#ready.promise;
  }

  next(): Promise<IteratorResult<Delivery, undefined>> {
    return this.#buffer.next();
  }

  /** Ends the stream; what is buffered is dropped. */
  async return(): Promise<IteratorReturnResult<undefined>> {
    this.#stop(() => this.#buffer.discard());
    this.#ready.reject(new Error("The stream was closed before its subscription began."));
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.return();
  }

  readonly #abort = (): void => {
    const reason: unknown = this.#signal?.reason;
    this.#stop(() => this.#buffer.discard(reason));
    this.#ready.reject(reason);
  };

  #onEnd(end: FeedEnd): void {
    this.#signal?.removeEventListener("abort", this.#abort);
    this.#buffer.end(end.kind === "failed" ? end.error : undefined);
    this.#ready.reject(end.kind === "session_closed" ? new Error("The session was closed.") : end.error);
  }

  #stop(how: () => void): void {
    this.#signal?.removeEventListener("abort", this.#abort);
    this.#leave();
    how();
  }
}
