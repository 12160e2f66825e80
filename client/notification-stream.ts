import type { NotificationParams } from "../protocol/notifications.ts";
import { AsyncBuffer } from "./async-buffer.ts";
import type { DaemonPeer } from "./daemon-peer.ts";
import type { EventsOptions } from "./event-stream.ts";
import { BufferOverflowError } from "./local-errors.ts";
import type { EventGap, FeedEnd, FeedListener, FeedStart } from "./session-feed.ts";
import type { SessionNotification } from "./session-notification.ts";

/** A notification of a session's log, or what of the log this stream does not get, in its place of the order. */
export type LogNotification =
  | SessionNotification
  | {
      readonly name: "session/gap";
      readonly params: Omit<NotificationParams<"session/gap">, "reason"> & Pick<EventGap, "reason">;
    };

/** As {@link EventsOptions}; a gap is one of the notifications. */
export type NotificationsOptions = Omit<EventsOptions, "onGap">;

/**
 * All of a session's numbered notifications from one moment on, for one reader: pi's events, and what the daemon tells
 * beside them. It begins, goes on after a lost connection, and ends as an `EventStream` does.
 */
export class NotificationStream implements AsyncIterableIterator<LogNotification, undefined> {
  readonly #buffer: AsyncBuffer<LogNotification>;
  readonly #ready = Promise.withResolvers<FeedStart>();
  readonly #leave: () => void;
  readonly #signal: AbortSignal | undefined;

  /** Use `SessionHandle.notifications()`. */
  constructor(peer: DaemonPeer, sessionId: string, options: NotificationsOptions = {}) {
    const { maxBufferedEvents = 65_536, maxBufferedChars = 67_108_864 } = options;
    this.#buffer = new AsyncBuffer({ maxItems: maxBufferedEvents, maxSize: maxBufferedChars });
    this.#signal = options.signal;
    this.#ready.promise.catch(() => {});
    let newest = options.after ?? 0;
    const overflow = `maxBufferedEvents (${maxBufferedEvents}) or maxBufferedChars (${maxBufferedChars})`;
    const push = (notification: LogNotification, seq: number, size: number): void => {
      if (this.#buffer.push(notification, size)) newest = seq;
      else this.#stop(() => this.#buffer.end(new BufferOverflowError(overflow, newest)));
    };
    const listener: FeedListener = {
      begin: (start) => this.#ready.resolve(start),
      resume: () => {},
      gap: (gap) => push({ name: "session/gap", params: { sessionId, ...gap } }, gap.to, 1),
      receive: (notification, size) => push(notification, notification.params.seq, size),
      end: (end) => this.#onEnd(end),
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

  next(): Promise<IteratorResult<LogNotification, undefined>> {
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
