import { AsyncBuffer } from "./async-buffer.ts";
import type { DaemonPeer } from "./daemon-peer.ts";
import { BufferOverflowError, EventGapError } from "./local-errors.ts";
import type { SessionEnvelope } from "./pi-events.ts";
import type { EventGap, FeedEnd, FeedListener, FeedStart } from "./session-feed.ts";
import type { SessionNotification } from "./session-notification.ts";

export interface EventsOptions {
  /** The last seq that the reader has: later ones are replayed. Default: the session's present cursor. */
  readonly after?: number;
  /** The log to which `after` belongs (`EventStream.epoch`): so a cursor of another log is noticed. */
  readonly epoch?: string;
  /**
   * Called in its place of the order if some of what the stream has to give does not come: it is not kept any more, the
   * daemon was killed, the stream was read too slowly, or (`unreported`) nobody knows why. What follows is behind the gap.
   * Without it the stream throws `EventGapError` then.
   */
  readonly onGap?: (gap: EventGap) => void;
  /** Ends the stream at once by throwing the signal's reason. */
  readonly signal?: AbortSignal;
  /** How many envelopes wait for a slow reader before the stream ends with `BufferOverflowError`. Default: 65536. */
  readonly maxBufferedEvents?: number;
  /** The same in UTF-16 units of their frames. Default: 67108864. */
  readonly maxBufferedChars?: number;
}

/**
 * A session's events from one moment on, for one reader.
 *
 * The subscription is requested when the stream is made, so nothing that follows a later call is missed. After the
 * connection was lost it goes on behind what it has, with each envelope once and in order, or names the gap; one that was
 * not `ready` begins when the next connection stands.
 *
 * It ends without an error when the session or the client is closed; it throws what ended the client for good
 * (`ConnectionClosedError` without `reconnect`), `BufferOverflowError` when it is read too slowly, `EventGapError` at a
 * gap without `onGap`, and the daemon's `WireError` when the subscription is refused. All but an abort first give what
 * is buffered.
 */
export class EventStream implements AsyncIterableIterator<SessionEnvelope, undefined> {
  readonly #buffer: AsyncBuffer<SessionEnvelope>;
  readonly #ready = Promise.withResolvers<FeedStart>();
  readonly #leave: () => void;
  readonly #signal: AbortSignal | undefined;
  #lastSeq: number | undefined;
  #epoch: string | undefined;

  /** Use `SessionHandle.events()`. */
  constructor(peer: DaemonPeer, sessionId: string, options: EventsOptions = {}) {
    const { maxBufferedEvents = 65_536, maxBufferedChars = 67_108_864 } = options;
    this.#buffer = new AsyncBuffer({ maxItems: maxBufferedEvents, maxSize: maxBufferedChars });
    this.#lastSeq = options.after;
    this.#signal = options.signal;
    this.#ready.promise.catch(() => {});

    let newest = options.after ?? 0;
    const overflow = `maxBufferedEvents (${maxBufferedEvents}) or maxBufferedChars (${maxBufferedChars})`;
    const listener: FeedListener = {
      begin: (start) => {
        newest = options.after ?? start.cursor;
        this.#epoch = start.epoch;
        this.#ready.resolve(start);
      },
      resume: ({ epoch }) => {
        this.#epoch = epoch;
      },
      gap: (gap) => this.#onGap(gap, options.onGap, peer),
      receive: (notification: SessionNotification, size: number) => {
        if (notification.name !== "session/event") return;
        if (this.#buffer.push(notification.params, size)) newest = notification.params.seq;
        else this.#stop(() => this.#buffer.end(new BufferOverflowError(overflow, newest)));
      },
      end: (end: FeedEnd) => this.#onEnd(end),
    };
    this.#leave = () => peer.leaveFeed(sessionId, listener);
    if (options.signal?.aborted === true) {
      this.#onEnd({ kind: "failed", error: options.signal.reason });
      return;
    }
    options.signal?.addEventListener("abort", this.#abort, { once: true });
    peer.joinFeed(sessionId, listener, options.after, options.epoch);
  }

  /** Resolves when the daemon has confirmed the subscription; everything after that moment will be in the stream. */
  get ready(): Promise<FeedStart> {
    return this.#ready.promise;
  }

  /** The seq of the last envelope that was read: the `after` to resume with. Undefined before the first. */
  get lastSeq(): number | undefined {
    return this.#lastSeq;
  }

  /** The name of the log to which {@link lastSeq} belongs: the `epoch` to resume with. */
  get epoch(): string | undefined {
    return this.#epoch;
  }

  async next(): Promise<IteratorResult<SessionEnvelope, undefined>> {
    const result = await this.#buffer.next();
    if (result.done !== true) this.#lastSeq = result.value.seq;
    return result;
  }

  /** Ends the stream; what is buffered is dropped. The subscription ends with its last reader. */
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

  #onGap(gap: EventGap, onGap: ((gap: EventGap) => void) | undefined, peer: DaemonPeer): void {
    if (onGap === undefined) {
      this.#stop(() => this.#buffer.end(new EventGapError(gap)));
      return;
    }
    peer.shield(() => onGap(gap));
  }

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
