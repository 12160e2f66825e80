import type { Gap } from "../protocol/event.ts";
import type { Params } from "../protocol/methods.ts";
import type { NotificationName, NotificationParams } from "../protocol/notifications.ts";
import type { RequestDelivered, RequestFailed, RequestPrepared } from "../protocol/provider.ts";
import { covers, highestLevel, type ProviderLevel } from "../protocol/provider-level.ts";
import { BufferOverflowError, type EventGap } from "./local-errors.ts";
import type { SessionEnvelope } from "./pi-events.ts";

type PiRecord = SessionEnvelope["event"];

/** Notifications with a number in a session's log. */
type SessionNotificationName = {
  readonly [Name in Exclude<NotificationName, `daemon/${string}`>]: NotificationParams<Name> extends {
    readonly sessionId: string;
    readonly seq: number;
  }
    ? Name
    : never;
}[Exclude<NotificationName, `daemon/${string}`>];

/** A missing name does not compile. The table of notifications itself is not loaded: it brings all schemas. */
const numbered: Readonly<Record<SessionNotificationName, true>> = {
  "session/event": true,
  "session/updated": true,
  "session/replaced": true,
  "session/navigated": true,
  "session/labelled": true,
  "session/foreignWrite": true,
  "session/controlChanged": true,
  "prompt/updated": true,
  "run/started": true,
  "run/ended": true,
  "dialog/opened": true,
  "dialog/updated": true,
  "dialog/unsupported": true,
  "dialog/resolved": true,
  "delivery/updated": true,
  "pending/updated": true,
  "context/failed": true,
  "cache/broken": true,
  "cost/checkpointed": true,
  "cost/budgetReached": true,
  "optimisation/degraded": true,
  "pruning/changed": true,
  "pruning/nudged": true,
  "pruning/degraded": true,
};

export const sessionNotificationNames = Object.keys(numbered) as readonly SessionNotificationName[];

/** A notification about one session. */
export type SessionNotification = {
  readonly [Name in SessionNotificationName]: {
    readonly name: Name;
    readonly params: Name extends "session/event" ? SessionEnvelope : NotificationParams<Name>;
  };
}[SessionNotificationName];

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
  /** For a reader whose `more` has `catchUp`: pi's earlier events that still hold. */
  readonly present?: readonly PiRecord[];
}

/** Why a feed ended. */
export type FeedEnd =
  | { readonly kind: "session_closed" }
  | { readonly kind: "client_closed"; readonly error: Error }
  | { readonly kind: "failed"; readonly error: unknown };

/** The error that a reader's pending promises reject with when its feed ends. */
export function errorOf(end: FeedEnd): unknown {
  return end.kind === "session_closed" ? new Error("The session was closed.") : end.error;
}

/**
 * One reader of a session's notifications. `begin` is called first and once, `end` last and once; `resume` each time the
 * feed continues after a lost connection. None of them may throw.
 */
export interface FeedListener {
  begin(start: FeedStart): void;
  /** Later notifications continue where the reader was. */
  resume?(start: FeedStart): void;
  /** Called in the order of `seq`: numbers that the reader does not get. */
  gap(gap: EventGap): void;
  /** Each notification once, in the order of `seq`, with the text of its frame. */
  receive(notification: SessionNotification, frame: string): void;
  /** How much of requests to the provider the reader wants. Default: nothing. */
  readonly provider?: ProviderLevel;
  /** Whether it can answer the dialogs of extensions. */
  readonly dialogs?: boolean;
  /** Further params of the subscription, for a session that has no other reader. */
  readonly more?: SubscribeMore;
  /** Requests to the provider, at the highest level that any reader of the session asked for. */
  request?(notification: RequestNotification, size: number): void;
  /** What pi writes to its stderr, for a reader whose `more` has `stderr`. */
  stderr?(params: NotificationParams<"session/stderr">): void;
  /** What a file has before the tool `write` replaces it, for a reader whose `more` has `formerText`. */
  formerText?(params: NotificationParams<"session/formerText">): void;
  end(end: FeedEnd): void;
}

/** Params of `session/subscribe` that readers cannot share. */
export type SubscribeMore = Pick<
  Params<"session/subscribe">,
  "inOrder" | "awake" | "holdEdits" | "formerText" | "stderr" | "catchUp" | "viewer" | "deltas" | "coalesceMs"
>;

export interface FeedOptions {
  /**
   * `provider` and `dialogs` are present only when they change. Any rejection is allowed when the connection is lost:
   * {@link SessionFeed.suspend} is called first.
   */
  readonly subscribe: (
    place: { readonly after: number; readonly epoch: string | undefined } | undefined,
    provider: ProviderLevel | undefined,
    dialogs: boolean | undefined,
    more: SubscribeMore | undefined,
    /** Called when the answer arrives, before any notification that arrived after it. Undefined: the promise rejects. */
    onAnswer?: (start: FeedStart | undefined) => void,
  ) => Promise<unknown>;
  readonly unsubscribe: () => void;
  /** Called when the last reader has left. */
  readonly onIdle: () => void;
}

interface Reader {
  readonly listener: FeedListener;
  /** It asks for everything after this seq; `undefined`: from now on. */
  after: number | undefined;
  /** The log to which `after` belongs, if known. */
  readonly epoch: string | undefined;
  /** The newest seq it has; before it begins, the newest that had arrived when it joined. */
  position: number;
  hasBegun: boolean;
  /** What arrives before it begins or resumes; `undefined` otherwise. */
  held: Held[] | undefined;
  closing: boolean;
}

type Held =
  | { readonly kind: "notification"; readonly notification: SessionNotification; readonly frame: string }
  | { readonly kind: "gap"; readonly gap: Gap }
  /** A notification that this library does not know. */
  | { readonly kind: "unknown"; readonly firstSeq: number; readonly seq: number };

type Subscription =
  | { readonly kind: "none" }
  /** The connection is lost. */
  | { readonly kind: "suspended" }
  | { readonly kind: "pending"; readonly waiting: Reader[]; readonly later: Reader[] }
  | { readonly kind: "live"; readonly start: FeedStart };

/** A backstop: a daemon queues far less for one connection. */
const maxHeld = 1_000_000;

/**
 * The notifications of one session for any number of readers, over the one subscription that a connection can have.
 * A reader with its own cursor makes the daemon replay; the other readers skip by `seq` what they already have.
 */
export class SessionFeed {
  readonly #options: FeedOptions;
  readonly #readers = new Map<FeedListener, Reader>();
  #subscription: Subscription = { kind: "none" };
  #highest = 0;
  /** The level of requests that the daemon was asked for. */
  #level: ProviderLevel = "off";
  /** Whether the daemon was told that this client can answer dialogs. */
  #answers = false;
  /** The log that the daemon named last. */
  #epoch: string | undefined;
  /** The readers of the newest answer: the daemon may still report that their cursors belong to another log. */
  #resettable: readonly Reader[] = [];
  /** Counts connections: a request on an earlier one is never answered. */
  #connection = 0;

  constructor(options: FeedOptions) {
    this.#options = options;
  }

  /**
   * Adds a reader: from `after` on, else from now on. If it needs a request to the daemon, that is sent before this
   * returns, except while the connection is lost, and while a reader with a cursor waits for the answer to another request.
   */
  join(listener: FeedListener, after?: number, epoch?: string): void {
    // A cursor without an epoch belongs to the log that is known now, also if the reader has to wait.
    const log = epoch ?? (after === undefined ? undefined : this.#epoch);
    const position = this.#highest;
    const reader: Reader = { listener, after, epoch: log, position, hasBegun: false, held: [], closing: false };
    this.#readers.set(listener, reader);
    this.#admit(reader);
  }

  #admit(reader: Reader): void {
    const { listener, after } = reader;
    if (this.#readers.get(listener) !== reader || this.#subscription.kind === "suspended") return;
    const { provider = "off", dialogs = false } = listener;
    const isEnough = after === undefined && covers(this.#level, provider) && (this.#answers || !dialogs);
    if (isEnough && this.#subscription.kind === "live") {
      this.#begin(reader, this.#subscription.start);
    } else if (isEnough && this.#subscription.kind === "pending") {
      this.#subscription.waiting.push(reader);
    } else if (after !== undefined && this.#subscription.kind === "pending") {
      // Another reader can still wait to learn where it begins. A subscription that begins after that loses its events.
      this.#subscription.later.push(reader);
    } else {
      this.#subscribe(reader);
    }
  }

  /** Removes a reader; nothing more is called, not even `end`. */
  leave(listener: FeedListener): void {
    if (!this.#readers.delete(listener)) return;
    if (this.#readers.size > 0) {
      this.#updateOptions();
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

  receiveStderr(params: NotificationParams<"session/stderr">): void {
    for (const { listener } of [...this.#readers.values()])
      if (listener.more?.stderr === true) listener.stderr?.(params);
  }

  receiveFormerText(params: NotificationParams<"session/formerText">): void {
    for (const { listener } of [...this.#readers.values()])
      if (listener.more?.formerText === true) listener.formerText?.(params);
  }

  receive(notification: SessionNotification, frame: string): void {
    this.#highest = Math.max(this.#highest, notification.params.seq);
    for (const reader of this.#readers.values()) this.#deliver(reader, { kind: "notification", notification, frame });
    if (notification.name === "session/updated" && notification.params.session.state === "closed") this.closeSession();
  }

  /** The daemon reported that it does not send some numbers. */
  receiveGap(gap: Gap): void {
    if (gap.reason === "log_reset") this.#resetLog(gap);
    else {
      this.#highest = Math.max(this.#highest, gap.to);
      for (const reader of this.#readers.values()) this.#deliver(reader, { kind: "gap", gap });
    }
  }

  /** A notification of a newer protocol has these numbers. */
  skip(firstSeq: number, seq: number): void {
    this.#highest = Math.max(this.#highest, seq);
    for (const reader of this.#readers.values()) this.#deliver(reader, { kind: "unknown", firstSeq, seq });
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

  /** Another connection is open: subscribes for all readers, each of which continues after what it has. */
  resume(): void {
    if (this.#subscription.kind !== "suspended") return;
    this.#subscription = { kind: "none" };
    const readers = [...this.#readers.values()];
    const cursors = readers.flatMap(({ after }) => (after === undefined ? [] : [after]));
    const place = { after: Math.max(0, Math.min(...cursors)), epoch: this.#epoch ?? readers[0]?.epoch };
    this.#request(readers, cursors.length === 0 ? undefined : place);
  }

  /** The session is closed: readers end after what arrived before. */
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
    // A subscription that starts again at a later cursor would leave out what other readers still wait for.
    const places = Array.from(this.#readers.values(), ({ held, position, after }) =>
      held === undefined ? position : (after ?? Number.POSITIVE_INFINITY),
    );
    const after = reader.after === undefined ? undefined : Math.max(0, Math.min(...places));
    this.#request([reader], after === undefined ? undefined : { after, epoch: reader.epoch });
  }

  #request(asking: readonly Reader[], place: Parameters<FeedOptions["subscribe"]>[0]): void {
    const [waiting, later]: [Reader[], Reader[]] = [[...asking], []];
    const pending: Subscription = { kind: "pending", waiting, later };
    if (this.#subscription.kind === "none") this.#subscription = pending;
    const connection = this.#connection;
    const more = asking.find(({ listener }) => listener.more !== undefined)?.listener.more;
    // Not when the promise resolves, which is later than the answers and notifications that arrive at the same time.
    const onAnswer = (start: FeedStart | undefined): void => {
      if (connection !== this.#connection) return;
      // What arrived before the answer belongs to an earlier subscription, and is repeated after it in order.
      for (const { after, held } of waiting) if (after !== undefined) held?.splice(0);
      if (start === undefined) return;
      if (this.#subscription === pending) this.#subscription = { kind: "live", start };
      // Numbers of another log say nothing about this one.
      if (this.#epoch !== undefined && this.#epoch !== start.epoch) this.#highest = start.cursor;
      this.#epoch = start.epoch;
      this.#resettable = waiting.filter(({ after }) => after !== undefined);
      for (const each of waiting) this.#begin(each, start);
      for (const each of later) this.#admit(each);
    };
    this.#options.subscribe(place, ...this.#changedOptions(), more, onAnswer).catch((error: unknown) => {
      if (connection !== this.#connection) return;
      if (this.#subscription === pending) this.#subscription = { kind: "none" };
      for (const each of asking)
        this.#finish(each, each.closing ? { kind: "session_closed" } : { kind: "failed", error });
      // What was refused may be what only the first ones asked for.
      for (const each of [...waiting.slice(asking.length), ...later]) this.#admit(each);
    });
  }

  get #isSubscribed(): boolean {
    return this.#subscription.kind === "pending" || this.#subscription.kind === "live";
  }

  #reset(): void {
    this.#subscription = { kind: "none" };
    this.#level = "off";
    this.#answers = false;
  }

  /** The level and the answering of dialogs, where they changed. */
  #changedOptions(): [provider: ProviderLevel | undefined, dialogs: boolean | undefined] {
    const { level, answers } = { level: this.#level, answers: this.#answers };
    this.#level = this.#wanted();
    this.#answers = Array.from(this.#readers.keys()).some(({ dialogs }) => dialogs === true);
    return [this.#level === level ? undefined : this.#level, this.#answers === answers ? undefined : this.#answers];
  }

  #wanted(): ProviderLevel {
    return highestLevel(Array.from(this.#readers.keys(), ({ provider }) => provider ?? "off"));
  }

  /** The reader with the highest level, or the one that answers dialogs, may have left. */
  #updateOptions(): void {
    if (!this.#isSubscribed) return;
    const [provider, dialogs] = this.#changedOptions();
    if (provider === undefined && dialogs === undefined) return;
    this.#options.subscribe(undefined, provider, dialogs, undefined).catch(() => {});
  }

  #begin(reader: Reader, { cursor: answered, epoch, present }: FeedStart): void {
    if (this.#readers.get(reader.listener) !== reader) return;
    // The reader may have joined after the first events that follow the answer.
    const cursor = Math.max(answered, reader.after === undefined ? reader.position : 0);
    reader.position = reader.after ?? cursor;
    if (reader.hasBegun) reader.listener.resume?.({ cursor, epoch });
    else reader.listener.begin({ cursor, epoch, ...(present === undefined ? {} : { present }) });
    reader.hasBegun = true;
    const held = reader.held ?? [];
    reader.held = undefined;
    for (const each of held) this.#deliver(reader, each);
    if (reader.closing) this.#finish(reader, { kind: "session_closed" });
  }

  /** The cursors of the readers that just asked belong to another log: everything kept of this log follows. */
  #resetLog(gap: Gap): void {
    for (const reader of [...this.#readers.values()]) {
      const isAsking = reader.held !== undefined && reader.after !== undefined;
      if (isAsking || this.#resettable.includes(reader)) this.#deliver(reader, { kind: "gap", gap });
    }
    this.#resettable = [];
  }

  #deliver(reader: Reader, item: Held): void {
    if (this.#readers.get(reader.listener) !== reader) return;
    if (reader.held !== undefined) {
      if (reader.held.length < maxHeld) reader.held.push(item);
      else
        this.#finish(reader, {
          kind: "failed",
          error: new BufferOverflowError(`${maxHeld} events`, reader.after ?? 0),
        });
      return;
    }
    if (item.kind === "gap" && item.gap.reason === "log_reset") {
      reader.position = 0;
      reader.listener.gap(item.gap);
      return;
    }
    const { position } = reader;
    const [first, last] = [firstOf(item), lastOf(item)];
    // Another reader's replay.
    if (last <= position) return;
    reader.position = last;
    const missing = { from: position + 1, to: first - 1 };
    if (first > position + 1) reader.listener.gap({ ...missing, reason: "unreported" });
    if (this.#readers.get(reader.listener) !== reader) return;
    if (item.kind === "unknown") return;
    if (item.kind === "gap") reader.listener.gap({ ...item.gap, from: Math.max(first, position + 1) });
    // The reader already has a part of the merged deltas, and the rest cannot be separated.
    else if (first <= position)
      reader.listener.gap({ from: position + 1, to: last, reason: "slow_reader", onlyDeltas: true });
    else reader.listener.receive(item.notification, item.frame);
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
