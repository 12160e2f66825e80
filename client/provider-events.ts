import type { RequestDelivered, RequestFailed, RequestPrepared } from "../protocol/provider.ts";
import { covers, type ProviderLevel } from "../protocol/provider-level.ts";
import { AsyncBuffer } from "./async-buffer.ts";
import type { DaemonPeer } from "./daemon-peer.ts";
import { BufferOverflowError } from "./local-errors.ts";
import type { FeedEnd, FeedListener, RequestNotification } from "./session-feed.ts";

/** What became of a request to the model's provider. `prepared` comes first, then one of the others, by `requestId`. */
export type ProviderEvent =
  | ({ readonly kind: "prepared" } & RequestPrepared)
  | ({ readonly kind: "delivered" } & RequestDelivered)
  | ({ readonly kind: "failed" } & RequestFailed);

export interface ProviderEventsOptions {
  /** `messages` and `payload` bring these with each `prepared` too. Default: summary. */
  readonly level?: Exclude<ProviderLevel, "off">;
  /** Ends the stream at once by throwing the signal's reason. */
  readonly signal?: AbortSignal;
  /** How many events wait for a slow reader before the stream ends with `BufferOverflowError`. Default: 4096. */
  readonly maxBufferedEvents?: number;
  /** The same in UTF-16 units of their frames. Default: 67108864. */
  readonly maxBufferedChars?: number;
}

/**
 * A session's requests to its model's provider, from now on, for one reader. They are live only: what happens while there
 * is no connection is not told, so that one that was prepared before may have no end. It ends as `EventStream` does.
 */
export class ProviderEvents implements AsyncIterableIterator<ProviderEvent, undefined> {
  readonly #buffer: AsyncBuffer<ProviderEvent>;
  readonly #ready = Promise.withResolvers<void>();
  readonly #leave: () => void;
  readonly #signal: AbortSignal | undefined;
  /** The request that this reader has heard of and whose end it has not. */
  #open: string | undefined;

  /** Use `SessionHandle.providerEvents()`. */
  constructor(peer: DaemonPeer, sessionId: string, options: ProviderEventsOptions = {}) {
    const { level = "summary", signal, maxBufferedEvents = 4_096, maxBufferedChars = 67_108_864 } = options;
    this.#buffer = new AsyncBuffer({ maxItems: maxBufferedEvents, maxSize: maxBufferedChars });
    this.#signal = signal;
    this.#ready.promise.catch(() => {});
    const overflow = `maxBufferedEvents (${maxBufferedEvents}) or maxBufferedChars (${maxBufferedChars})`;
    const listener: FeedListener = {
      provider: level,
      begin: () => this.#ready.resolve(),
      resume: () => {},
      gap: () => {},
      receive: () => {},
      request: (notification, size) => {
        const event = this.#eventOf(notification, level);
        if (event === undefined || this.#buffer.push(event, size)) return;
        this.#stop(() => this.#buffer.end(new BufferOverflowError(overflow)));
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

  /** Resolves when the daemon has confirmed the subscription; every request that begins after that moment is told of. */
  get ready(): Promise<void> {
    return this.#ready.promise;
  }

  next(): Promise<IteratorResult<ProviderEvent, undefined>> {
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

  /** What this reader may see of it: others of the same connection can have asked for more, and earlier. */
  #eventOf({ name, params }: RequestNotification, level: ProviderLevel): ProviderEvent | undefined {
    if (name === "provider/requestPrepared") {
      this.#open = params.requestId;
      return { kind: "prepared", ...upTo(level, params) };
    }
    if (this.#open !== params.requestId) return undefined;
    this.#open = undefined;
    return name === "provider/requestDelivered" ? { kind: "delivered", ...params } : { kind: "failed", ...params };
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

function upTo(level: ProviderLevel, params: RequestPrepared): RequestPrepared {
  if (covers(level, "payload")) return params;
  const { payload: _payload, ...withMessages } = params;
  if (covers(level, "messages")) return withMessages;
  const { messages: _messages, messagesBytes: _bytes, truncated: _truncated, ...summary } = withMessages;
  return summary;
}
