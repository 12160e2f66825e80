import type { DaemonEvent, FeedPlace } from "../protocol/feed.ts";
import { AsyncBuffer } from "./async-buffer.ts";
import type { DaemonFeedGap, DaemonFeedListener } from "./daemon-feed.ts";
import type { DaemonPeer } from "./daemon-peer.ts";
import { BufferOverflowError, EventGapError } from "./local-errors.ts";

export interface DaemonEventsOptions {
  /** The last seq that the reader has: later ones are replayed. Default: the feed's present cursor. */
  readonly after?: number;
  /** The feed to which `after` belongs (`DaemonEvents.epoch`): so a cursor of another feed is noticed. */
  readonly epoch?: string;
  /**
   * Called in its place of the order if some events do not come: they are not kept any more, or the cursor is of another
   * feed (`log_reset`). List sessions, deliveries and dialogs then; what follows is after the gap. Without it the stream
   * throws `EventGapError`.
   */
  readonly onGap?: (gap: DaemonFeedGap) => void;
  /** Ends the stream at once by throwing the signal's reason. */
  readonly signal?: AbortSignal;
  /** How many events wait for a slow reader before the stream ends with `BufferOverflowError`. Default: 65536. */
  readonly maxBuffered?: number;
}

/** What happens in all sessions, for one reader. It ends as `EventStream` does. */
export class DaemonEvents implements AsyncIterableIterator<DaemonEvent, undefined> {
  readonly #buffer: AsyncBuffer<{ readonly event: DaemonEvent; readonly epoch: string }>;
  readonly #ready = Promise.withResolvers<FeedPlace>();
  readonly #leave: () => void;
  readonly #signal: AbortSignal | undefined;
  #lastSeq: number | undefined;
  #epoch: string | undefined;

  /** Use `Client.daemonEvents()`. */
  constructor(peer: DaemonPeer, options: DaemonEventsOptions = {}) {
    const { signal, maxBuffered = 65_536, onGap, after, epoch } = options;
    this.#buffer = new AsyncBuffer({ maxItems: maxBuffered, maxSize: Number.POSITIVE_INFINITY });
    this.#signal = signal;
    this.#lastSeq = after;
    this.#epoch = epoch;
    this.#ready.promise.catch(() => {});
    const listener: DaemonFeedListener = {
      begin: (place) => {
        this.#lastSeq ??= place.cursor;
        this.#epoch ??= place.epoch;
        this.#ready.resolve(place);
      },
      gap: (gap) => {
        if (onGap === undefined) this.#stop(() => this.#buffer.end(new EventGapError(gap)));
        else peer.shield(() => onGap(gap));
      },
      receive: (event, epoch) => {
        if (this.#buffer.push({ event, epoch })) return;
        this.#stop(() => this.#buffer.end(new BufferOverflowError(`maxBuffered (${maxBuffered})`)));
      },
      end: ({ kind, error }) => {
        this.#signal?.removeEventListener("abort", this.#abort);
        this.#buffer.end(kind === "failed" ? error : undefined);
        this.#ready.reject(error);
      },
    };
    this.#leave = () => peer.daemonFeed.leave(listener);
    if (signal?.aborted === true) {
      listener.end({ kind: "failed", error: signal.reason });
      return;
    }
    signal?.addEventListener("abort", this.#abort, { once: true });
    peer.daemonFeed.join(listener, after, epoch);
  }

  /** Resolves when the daemon has confirmed the subscription, with where the feed is then. */
  get ready(): Promise<FeedPlace> {
    return this.#ready.promise;
  }

  /** The seq of the last event that was read, at first where the stream has begun: the `after` to resume with. */
  get lastSeq(): number | undefined {
    return this.#lastSeq;
  }

  /** The name of the feed to which {@link lastSeq} belongs: the `epoch` to resume with. */
  get epoch(): string | undefined {
    return this.#epoch;
  }

  async next(): Promise<IteratorResult<DaemonEvent, undefined>> {
    const { value: next, done } = await this.#buffer.next();
    if (done === true) return { done, value: undefined };
    this.#lastSeq = next.event.seq;
    this.#epoch = next.epoch;
    return { done: false, value: next.event };
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

  #stop(how: () => void): void {
    this.#signal?.removeEventListener("abort", this.#abort);
    this.#leave();
    how();
  }
}
