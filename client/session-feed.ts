import type { Gap } from "../protocol/event.ts";
import type { NotificationParams } from "../protocol/notifications.ts";
import type { RequestDelivered, RequestFailed, RequestPrepared } from "../protocol/provider.ts";
import { covers, highestLevel, type ProviderLevel } from "../protocol/provider-level.ts";
import { BufferOverflowError } from "./local-errors.ts";
import type { SessionEnvelope } from "./pi-events.ts";

/** A notification about one session. */
export type SessionNotification =
  | { readonly name: "session/event"; readonly params: SessionEnvelope }
  | { readonly name: "session/updated"; readonly params: NotificationParams<"session/updated"> }
  | { readonly name: "session/replaced"; readonly params: NotificationParams<"session/replaced"> }
  | { readonly name: "session/foreignWrite"; readonly params: NotificationParams<"session/foreignWrite"> }
  | { readonly name: "session/controlChanged"; readonly params: NotificationParams<"session/controlChanged"> }
  | { readonly name: "prompt/updated"; readonly params: NotificationParams<"prompt/updated"> }
  | { readonly name: "run/started"; readonly params: NotificationParams<"run/started"> }
  | { readonly name: "run/ended"; readonly params: NotificationParams<"run/ended"> }
  | { readonly name: "delivery/updated"; readonly params: NotificationParams<"delivery/updated"> }
  | { readonly name: "pending/updated"; readonly params: NotificationParams<"pending/updated"> };

/** A notification about a request to the provider. It has no `seq`, and is never replayed. */
export type RequestNotification =
  | { readonly name: "provider/requestPrepared"; readonly params: RequestPrepared }
  | { readonly name: "provider/requestDelivered"; readonly params: RequestDelivered }
  | { readonly name: "provider/requestFailed"; readonly params: RequestFailed };

/** Where a reader's notifications begin. */
export interface FeedStart {
  /** The session's newest seq when the subscription began. */
  readonly cursor: number;
  /** What was asked for and cannot be replayed. */
  readonly gap?: Gap;
}

/** Why a reader gets nothing more. */
export type FeedEnd =
  | { readonly kind: "session_closed" }
  | { readonly kind: "client_closed"; readonly error: Error }
  | { readonly kind: "failed"; readonly error: unknown };

/**
 * One reader of a session's notifications. `begin` comes first and once, `end` last and once; `resume` each time that
 * the feed goes on after the connection was lost. None of them may throw.
 */
export interface FeedListener {
  begin(start: FeedStart): void;
  /** What follows goes on where the reader was, behind the gap if there is one. */
  resume(start: FeedStart): void;
  /** Each notification once, in the order of `seq`. `size`: the length of its frame. */
  receive(notification: SessionNotification, size: number): void;
  /** What it wants to hear of requests to the provider. Default: nothing. */
  readonly provider?: ProviderLevel;
  /** Of requests, as far as any reader of the session has asked. */
  request?(notification: RequestNotification, size: number): void;
  end(end: FeedEnd): void;
}

export interface FeedOptions {
  /**
   * `provider`: the level, when it is to be another one. Rejects with anything when the connection is lost:
   * {@link SessionFeed.suspend} is called before that.
   */
  readonly subscribe: (after: number | undefined, provider: ProviderLevel | undefined) => Promise<FeedStart>;
  readonly unsubscribe: () => void;
  /** Called when the last reader has left. */
  readonly onIdle: () => void;
}

interface Reader {
  readonly listener: FeedListener;
  /** Behind which it asks for everything; `undefined`: from now on. */
  after: number | undefined;
  /** The newest seq it has; before it has begun, the newest that had arrived when it joined. */
  position: number;
  hasBegun: boolean;
  /** What arrives before it has begun or gone on; `undefined` otherwise. */
  held: { readonly notification: SessionNotification; readonly size: number }[] | undefined;
  closing: boolean;
}

type Subscription =
  | { readonly kind: "none" }
  /** There is no connection. */
  | { readonly kind: "suspended" }
  | { readonly kind: "pending"; readonly waiting: Reader[] }
  | { readonly kind: "live"; readonly cursor: number };

/** A backstop: what a daemon queues for one connection is far below it. */
const maxHeld = 1_000_000;

/**
 * The notifications of one session for any number of readers over the one subscription that a connection can have.
 * A reader with a cursor of its own makes the daemon replay; the others skip by `seq` what they have already.
 */
export class SessionFeed {
  readonly #options: FeedOptions;
  readonly #readers = new Map<FeedListener, Reader>();
  #subscription: Subscription = { kind: "none" };
  #highest = 0;
  /** What the daemon was asked to tell of requests. */
  #level: ProviderLevel = "off";
  /** Counts connections: what was asked on an earlier one is answered by nobody. */
  #connection = 0;

  constructor(options: FeedOptions) {
    this.#options = options;
  }

  /** Adds a reader: from `after` on, else from now on. The request to subscribe is on its way when this returns. */
  join(listener: FeedListener, after?: number): void {
    const reader: Reader = { listener, after, position: this.#highest, hasBegun: false, held: [], closing: false };
    this.#readers.set(listener, reader);
    if (this.#subscription.kind === "suspended") return;
    const isEnough = after === undefined && covers(this.#level, listener.provider ?? "off");
    if (isEnough && this.#subscription.kind === "live") {
      this.#begin(reader, this.#subscription);
    } else if (isEnough && this.#subscription.kind === "pending") {
      this.#subscription.waiting.push(reader);
    } else {
      this.#subscribe(reader);
    }
  }

  /** Removes a reader; it hears nothing more, not even an end. */
  leave(listener: FeedListener): void {
    if (!this.#readers.delete(listener)) return;
    if (this.#readers.size > 0) {
      this.#lower();
      return;
    }
    if (this.#isSubscribed) this.#options.unsubscribe();
    this.#reset();
    this.#options.onIdle();
  }

  receiveRequest(notification: RequestNotification, size: number): void {
    for (const { listener, held, hasBegun } of [...this.#readers.values()]) {
      if (held === undefined || hasBegun) listener.request?.(notification, size);
    }
  }

  receive(notification: SessionNotification, size: number): void {
    this.#highest = Math.max(this.#highest, notification.params.seq);
    for (const reader of this.#readers.values()) this.#give(reader, notification, size);
    if (notification.name === "session/updated" && notification.params.session.state === "closed") this.closeSession();
  }

  /** The connection is lost, and with it the subscription. */
  suspend(): void {
    this.#connection += 1;
    this.#reset();
    this.#subscription = { kind: "suspended" };
    for (const reader of this.#readers.values()) {
      if (reader.held !== undefined && !reader.hasBegun) continue;
      reader.after = reader.position;
      reader.held ??= [];
    }
  }

  /** There is another connection: subscribes for all readers, each of which goes on behind what it has. */
  resume(): void {
    if (this.#subscription.kind !== "suspended") return;
    this.#subscription = { kind: "none" };
    const readers = [...this.#readers.values()];
    const cursors = readers.flatMap(({ after }) => (after === undefined ? [] : [after]));
    this.#ask(readers, cursors.length === 0 ? undefined : Math.max(0, Math.min(...cursors)));
  }

  /** The session is closed: readers end after what they have got. */
  closeSession(): void {
    if (this.#subscription.kind !== "suspended") this.#reset();
    for (const reader of [...this.#readers.values()]) {
      if (reader.held === undefined) this.#finish(reader, { kind: "session_closed" });
      else reader.closing = true;
    }
  }

  /** Ends all readers at once. */
  end(end: FeedEnd): void {
    this.#reset();
    for (const reader of [...this.#readers.values()]) this.#finish(reader, end);
  }

  #subscribe(reader: Reader): void {
    // A daemon that begins a subscription anew at a later cursor would leave out what other readers still wait for.
    const begun = [...this.#readers.values()].flatMap((other) => (other.held === undefined ? [other.position] : []));
    const after = reader.after === undefined ? undefined : Math.max(0, Math.min(reader.after, ...begun));
    this.#ask([reader], after);
  }

  #ask(waiting: Reader[], after: number | undefined): void {
    const pending: Subscription = { kind: "pending", waiting };
    if (this.#subscription.kind === "none") this.#subscription = pending;
    const connection = this.#connection;
    const level = this.#wanted();
    const provider = level === this.#level ? undefined : level;
    this.#level = level;
    this.#options.subscribe(after, provider).then(
      (start) => {
        if (connection !== this.#connection) return;
        if (this.#subscription === pending) this.#subscription = { kind: "live", cursor: start.cursor };
        if (start.gap?.reason === "log_reset") this.#highest = start.cursor;
        for (const each of waiting) this.#begin(each, start);
      },
      (error: unknown) => {
        if (connection !== this.#connection) return;
        if (this.#subscription === pending) this.#subscription = { kind: "none" };
        for (const each of waiting)
          this.#finish(each, each.closing ? { kind: "session_closed" } : { kind: "failed", error });
      },
    );
  }

  get #isSubscribed(): boolean {
    return this.#subscription.kind === "pending" || this.#subscription.kind === "live";
  }

  #reset(): void {
    this.#subscription = { kind: "none" };
    this.#level = "off";
  }

  #wanted(): ProviderLevel {
    return highestLevel(Array.from(this.#readers.keys(), ({ provider }) => provider ?? "off"));
  }

  /** The reader that wanted most of requests may have left. */
  #lower(): void {
    const wanted = this.#wanted();
    if (!this.#isSubscribed || covers(wanted, this.#level)) return;
    this.#level = wanted;
    this.#options.subscribe(undefined, wanted).catch(() => {});
  }

  #begin(reader: Reader, { cursor: answered, gap }: FeedStart): void {
    if (this.#readers.get(reader.listener) !== reader) return;
    const isReset = gap?.reason === "log_reset";
    // A reader that joined another's request may have come behind the first events that follow its answer.
    const cursor = Math.max(answered, reader.after === undefined && !isReset ? reader.position : 0);
    const concerned = gap !== undefined && reader.after !== undefined && (isReset || gap.to > reader.after);
    // After a reset the log counts anew, so the reader's own cursor says nothing about what follows.
    reader.position = concerned && isReset ? -1 : (reader.after ?? cursor);
    const start = concerned ? { cursor, gap } : { cursor };
    if (reader.hasBegun) reader.listener.resume(start);
    else reader.listener.begin(start);
    reader.hasBegun = true;
    // The tail of another reader's replay may have come before this reader's own.
    const held = (reader.held ?? []).sort((a, b) => a.notification.params.seq - b.notification.params.seq);
    reader.held = undefined;
    for (const { notification, size } of held) this.#give(reader, notification, size);
    if (reader.closing) this.#finish(reader, { kind: "session_closed" });
  }

  #give(reader: Reader, notification: SessionNotification, size: number): void {
    if (this.#readers.get(reader.listener) !== reader) return;
    if (reader.held !== undefined) {
      if (reader.held.length < maxHeld) reader.held.push({ notification, size });
      else
        this.#finish(reader, {
          kind: "failed",
          error: new BufferOverflowError(`${maxHeld} events`, reader.after ?? 0),
        });
    } else if (notification.params.seq > reader.position) {
      reader.position = notification.params.seq;
      reader.listener.receive(notification, size);
    }
  }

  #finish(reader: Reader, end: FeedEnd): void {
    if (this.#readers.get(reader.listener) !== reader) return;
    this.leave(reader.listener);
    reader.listener.end(end);
  }
}
