import type { Gap } from "../protocol/event.ts";
import type { RequestDelivered, RequestFailed, RequestPrepared } from "../protocol/provider.ts";
import { covers, highestLevel, type ProviderLevel } from "../protocol/provider-level.ts";
import { BufferOverflowError } from "./local-errors.ts";
import type { SessionNotification } from "./session-notification.ts";

/** A notification about a request to the provider. It has no `seq`, and is never replayed. */
export type RequestNotification =
  | { readonly name: "provider/requestPrepared"; readonly params: RequestPrepared }
  | { readonly name: "provider/requestDelivered"; readonly params: RequestDelivered }
  | { readonly name: "provider/requestFailed"; readonly params: RequestFailed };

/** Where a reader's notifications begin. */
export interface FeedStart {
  /** The session's newest seq when the subscription began. */
  readonly cursor: number;
  /** The name of the session's log. */
  readonly epoch: string;
}

/**
 * Numbers of a session's log that a reader does not get, from the first to the last. `unreported`: they did not come, and
 * the daemon has not said why, which is a mistake somewhere.
 */
export type EventGap = Gap | (Omit<Gap, "reason"> & { readonly reason: "unreported" });

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
  /** What follows goes on where the reader was. */
  resume(start: FeedStart): void;
  /** In its place of the order: what it does not get. */
  gap(gap: EventGap): void;
  /** Each notification once, in the order of `seq`. `size`: the length of its frame. */
  receive(notification: SessionNotification, size: number): void;
  /** What it wants to hear of requests to the provider. Default: nothing. */
  readonly provider?: ProviderLevel;
  /** Whether it can answer the dialogs of extensions. */
  readonly dialogs?: boolean;
  /** Of requests, as far as any reader of the session has asked. */
  request?(notification: RequestNotification, size: number): void;
  end(end: FeedEnd): void;
}

export interface FeedOptions {
  /**
   * `provider` and `dialogs` are given when they are to be something else than before. Rejects with anything when the connection is lost:
   * {@link SessionFeed.suspend} is called before that.
   */
  readonly subscribe: (
    place: { readonly after: number; readonly epoch: string | undefined } | undefined,
    provider: ProviderLevel | undefined,
    dialogs: boolean | undefined,
  ) => Promise<FeedStart>;
  readonly unsubscribe: () => void;
  /** Called when the last reader has left. */
  readonly onIdle: () => void;
}

interface Reader {
  readonly listener: FeedListener;
  /** Behind which it asks for everything; `undefined`: from now on. */
  after: number | undefined;
  /** The log to which `after` belongs, if the reader knows. */
  readonly epoch: string | undefined;
  /** The newest seq it has; before it has begun, the newest that had arrived when it joined. */
  position: number;
  hasBegun: boolean;
  /** Up to here, what does not follow on is the rest of an earlier subscription, and comes again in its place. */
  stale: number;
  /** What arrives before it has begun or gone on; `undefined` otherwise. */
  held: Held[] | undefined;
  closing: boolean;
}

type Held =
  | { readonly kind: "notification"; readonly notification: SessionNotification; readonly size: number }
  | { readonly kind: "gap"; readonly gap: Gap }
  /** A notification that this library does not know. */
  | { readonly kind: "unknown"; readonly firstSeq: number; readonly seq: number };

type Subscription =
  | { readonly kind: "none" }
  /** There is no connection. */
  | { readonly kind: "suspended" }
  | { readonly kind: "pending"; readonly waiting: Reader[] }
  | { readonly kind: "live"; readonly start: FeedStart };

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
  /** Whether the daemon was told that dialogs can be answered here. */
  #answers = false;
  /** The log that the daemon has named last. */
  #epoch: string | undefined;
  /** Those that the newest answer concerns, until the daemon may say that their cursors are of another log. */
  #resettable: readonly Reader[] = [];
  /** Counts connections: what was asked on an earlier one is answered by nobody. */
  #connection = 0;

  constructor(options: FeedOptions) {
    this.#options = options;
  }

  /** Adds a reader: from `after` on, else from now on. The request to subscribe is on its way when this returns. */
  join(listener: FeedListener, after?: number, epoch?: string): void {
    const position = this.#highest;
    const reader: Reader = { listener, after, epoch, position, stale: 0, hasBegun: false, held: [], closing: false };
    this.#readers.set(listener, reader);
    if (this.#subscription.kind === "suspended") return;
    const { provider = "off", dialogs = false } = listener;
    const isEnough = after === undefined && covers(this.#level, provider) && (this.#answers || !dialogs);
    if (isEnough && this.#subscription.kind === "live") {
      this.#begin(reader, this.#subscription.start);
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
    for (const reader of this.#readers.values()) this.#give(reader, { kind: "notification", notification, size });
    if (notification.name === "session/updated" && notification.params.session.state === "closed") this.closeSession();
  }

  /** The daemon does not send some numbers. */
  receiveGap(gap: Gap): void {
    if (gap.reason === "log_reset") this.#resetLog(gap);
    else {
      this.#highest = Math.max(this.#highest, gap.to);
      for (const reader of this.#readers.values()) this.#give(reader, { kind: "gap", gap });
    }
  }

  /** A notification that this library does not know has these numbers. */
  pass(firstSeq: number, seq: number): void {
    this.#highest = Math.max(this.#highest, seq);
    for (const reader of this.#readers.values()) this.#give(reader, { kind: "unknown", firstSeq, seq });
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
    const place = { after: Math.max(0, Math.min(...cursors)), epoch: this.#epoch ?? readers[0]?.epoch };
    this.#ask(readers, cursors.length === 0 ? undefined : place);
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
    this.#ask([reader], after === undefined ? undefined : { after, epoch: reader.epoch ?? this.#epoch });
  }

  #ask(waiting: Reader[], place: Parameters<FeedOptions["subscribe"]>[0]): void {
    const pending: Subscription = { kind: "pending", waiting };
    if (this.#subscription.kind === "none") this.#subscription = pending;
    const connection = this.#connection;
    this.#options.subscribe(place, ...this.#orders()).then(
      (start) => {
        if (connection !== this.#connection) return;
        if (this.#subscription === pending) this.#subscription = { kind: "live", start };
        // Numbers of another log say nothing about this one.
        if (this.#epoch !== undefined && this.#epoch !== start.epoch) this.#highest = start.cursor;
        this.#epoch = start.epoch;
        this.#resettable = waiting.filter(({ after }) => after !== undefined);
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
    this.#answers = false;
  }

  /** What is to be something else than before. */
  #orders(): [provider: ProviderLevel | undefined, dialogs: boolean | undefined] {
    const { level, answers } = { level: this.#level, answers: this.#answers };
    this.#level = this.#wanted();
    this.#answers = Array.from(this.#readers.keys()).some(({ dialogs }) => dialogs === true);
    return [this.#level === level ? undefined : this.#level, this.#answers === answers ? undefined : this.#answers];
  }

  #wanted(): ProviderLevel {
    return highestLevel(Array.from(this.#readers.keys(), ({ provider }) => provider ?? "off"));
  }

  /** The reader that wanted most of requests, or the one that answers dialogs, may have left. */
  #lower(): void {
    if (!this.#isSubscribed) return;
    const [provider, dialogs] = this.#orders();
    if (provider === undefined && dialogs === undefined) return;
    this.#options.subscribe(undefined, provider, dialogs).catch(() => {});
  }

  #begin(reader: Reader, { cursor: answered, epoch }: FeedStart): void {
    if (this.#readers.get(reader.listener) !== reader) return;
    // A reader that joined another's request may have come behind the first events that follow its answer.
    const cursor = Math.max(answered, reader.after === undefined ? reader.position : 0);
    reader.position = reader.after ?? cursor;
    reader.stale = answered;
    if (reader.hasBegun) reader.listener.resume({ cursor, epoch });
    else reader.listener.begin({ cursor, epoch });
    reader.hasBegun = true;
    const held = reader.held ?? [];
    reader.held = undefined;
    for (const each of held) this.#give(reader, each);
    if (reader.closing) this.#finish(reader, { kind: "session_closed" });
  }

  /** The cursors of those who have just asked are of another log: all that is kept of this one follows. */
  #resetLog(gap: Gap): void {
    for (const reader of [...this.#readers.values()]) {
      const isAsking = reader.held !== undefined && reader.after !== undefined;
      if (isAsking || this.#resettable.includes(reader)) this.#give(reader, { kind: "gap", gap });
    }
    this.#resettable = [];
  }

  #give(reader: Reader, given: Held): void {
    if (this.#readers.get(reader.listener) !== reader) return;
    if (reader.held !== undefined) {
      if (reader.held.length < maxHeld) reader.held.push(given);
      else
        this.#finish(reader, {
          kind: "failed",
          error: new BufferOverflowError(`${maxHeld} events`, reader.after ?? 0),
        });
      return;
    }
    if (given.kind === "gap" && given.gap.reason === "log_reset") {
      reader.position = 0;
      reader.listener.gap(given.gap);
      return;
    }
    const { position } = reader;
    const [first, last] = [firstOf(given), lastOf(given)];
    // The tail of another reader's replay.
    if (last <= position || (first > position + 1 && last <= reader.stale)) return;
    reader.stale = 0;
    reader.position = last;
    const missing = { from: position + 1, to: first - 1 };
    if (first > position + 1) reader.listener.gap({ ...missing, reason: "unreported" });
    if (this.#readers.get(reader.listener) !== reader) return;
    if (given.kind === "unknown") return;
    if (given.kind === "gap") reader.listener.gap({ ...given.gap, from: Math.max(first, position + 1) });
    // Of what was merged, a part is known already; the rest cannot be told from it.
    else if (first <= position)
      reader.listener.gap({ from: position + 1, to: last, reason: "slow_reader", onlyDeltas: true });
    else reader.listener.receive(given.notification, given.size);
  }

  #finish(reader: Reader, end: FeedEnd): void {
    if (this.#readers.get(reader.listener) !== reader) return;
    this.leave(reader.listener);
    reader.listener.end(end);
  }
}

function firstOf(held: Held): number {
  if (held.kind === "gap") return held.gap.from;
  if (held.kind === "unknown") return held.firstSeq;
  const { params } = held.notification;
  return "firstSeq" in params && params.firstSeq !== undefined ? params.firstSeq : params.seq;
}

function lastOf(held: Held): number {
  if (held.kind === "gap") return held.gap.to;
  return held.kind === "unknown" ? held.seq : held.notification.params.seq;
}
