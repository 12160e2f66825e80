import type { Gap, MessageOrigin } from "../../protocol/event.ts";
import type { NotificationName, NotificationParams } from "../../protocol/notifications.ts";
import type { PendingItem } from "../../protocol/pending.ts";
import type { ProviderLevel } from "../../protocol/provider-level.ts";
import { type Frame, unnumberedFrame } from "../frames/frame.ts";
import type { PiEvent } from "../pi/records.ts";
import type { OwedNotification } from "../store/children.ts";
import type { EventLog, LogChunk } from "./event-log.ts";
import type { LastEvents } from "./last-events.ts";
import { type CatchUp, headOf, PresentEvents } from "./present-events.ts";
import type { Subscriber } from "./subscription.ts";
import { type Orders, Subscriptions } from "./subscriptions.ts";

/** The params of a request notification, followed by params that are JSON already. */
export interface Told {
  readonly params: object;
  readonly parts: readonly (readonly [name: string, json: Buffer])[];
}

/** A notification of the daemon. */
export type Params = Readonly<Record<string, unknown>>;

/** A reader's position in a log. */
export interface Place {
  /** The last number that the reader has. */
  readonly after?: number | undefined;
  /** The epoch of that number, if the reader knows it. */
  readonly epoch?: string | undefined;
}

export interface SubscribeOptions extends Orders, Place {
  /** Receives a function that starts the notifications; calls it at the right moment. Default: immediately. */
  readonly whenAnswered?: ((begin: () => void) => void) | undefined;
}

export interface JournalOptions {
  readonly sessionId: string;
  /** Identifies the log: numbers of another epoch cannot be compared. */
  readonly epoch: string;
  readonly log: EventLog;
  /** A subscriber threw and was removed. */
  readonly onFault?: (error: unknown, subscriberId: string) => void;
}

/**
 * The notifications of a session: numbers them, retains them for reconnecting clients, and sends them to subscribers.
 */
export class Journal {
  readonly sessionId: string;
  readonly epoch: string;
  /** Whether the session is closed permanently. */
  isClosed = false;
  readonly #log: EventLog;
  readonly #subscriptions: Subscriptions;
  readonly #present = new PresentEvents();
  #hasPending = false;
  /** What waits for the end of a replay. */
  #unsaid: OwedNotification[] = [];
  #starts: (() => void)[] = [];
  #onSaid: (notification: OwedNotification) => void = () => {};

  constructor({ sessionId, epoch, log, onFault }: JournalOptions) {
    this.epoch = epoch;
    this.sessionId = sessionId;
    this.#log = log;
    this.#subscriptions = new Subscriptions(sessionId, log, onFault);
  }

  get cursor(): number {
    return this.#log.cursor;
  }

  /** Numbers that an earlier daemon used, or may have used, but did not store. */
  get lost(): Gap | undefined {
    return this.#log.lost;
  }

  get subscriptions(): Subscriptions {
    return this.#subscriptions;
  }

  /** A promise while {@link record} must not be called. `bytes`: the size of a large record. Never rejects. */
  room(bytes?: number): Promise<void> | undefined {
    return this.#log.room(bytes);
  }

  /** Prepares a large record that is not a delta and that {@link record} gets next. */
  stage(record: Buffer): Promise<void> {
    return this.#log.stage(record);
  }

  /** Appends a record as pi wrote it. `isDelta`: a high-rate record. `event`: the record, if it was parsed. */
  record(record: Buffer, generation: number, isDelta: boolean, event?: PiEvent, origin?: MessageOrigin): void {
    const former = this.#log.cursor;
    const frame = this.#log.appendEvent(record, generation, isDelta, origin);
    this.#publish(former, frame);
    if (!isDelta) this.#present.note(event ?? headOf(record), frame.seq);
    // The log and pi's output differ.
    if (this.#unsaid.length + this.#starts.length > 0 && !this.isReplaying) this.#endReplay();
  }

  /**
   * Appends a notification of the daemon; nothing if a former daemon told it. While pi's output is repeated, it waits:
   * a client may have another notification with the next number.
   */
  say(method: NotificationName, params: Params): void {
    const { said, isReplaying } = this.#log;
    if (said?.claim(method, params) === true) return;
    // The session's state is told at the end.
    if (isReplaying && method === "session/updated") return;
    if (isReplaying) this.#unsaid.push({ method, params: structuredClone(params) });
    else this.#say({ method, params });
  }

  /** Calls `onSaid` after each notification of the daemon. */
  onSaid(onSaid: (notification: OwedNotification) => void): void {
    this.#onSaid = onSaid;
  }

  /** While pi's output is repeated: what {@link say} has not told yet. */
  get unsaid(): readonly OwedNotification[] {
    return this.#unsaid;
  }

  /** Whether pi's output is a repetition, whose records are in a former daemon's log. */
  get isReplaying(): boolean {
    return this.#log.isReplaying;
  }

  /** Everything that a former daemon may have sent was repeated: what waited is told. */
  replayed(): void {
    this.#log.replayed();
    this.#endReplay();
  }

  /** pi's output cannot be matched with the log of a former daemon: the log goes on with new numbers. */
  cannotContinue(why: string): void {
    this.#log.cannotContinue(why);
    this.#endReplay();
  }

  /** Whether a former daemon told this after the place from which changes are applied. */
  hasSaid(method: NotificationName, params: Params): boolean {
    return this.#log.said?.has(method, params) === true;
  }

  /** The first notification that a former daemon told and this one has not, and whose params satisfy `isIt`. */
  findSaid(method: NotificationName, isIt: (params: Params) => boolean): Params | undefined {
    return this.#log.said?.find(method, isIt);
  }

  /** All changes that a former daemon may have told are told: {@link say} no longer looks for them. */
  forgetSaid(): void {
    this.#log.forgetSaid();
  }

  /** The highest level that any subscriber requests for provider requests. */
  get providerLevel(): ProviderLevel {
    return this.#subscriptions.providerLevel;
  }

  onProviderLevel(onLevel: () => void): void {
    this.#subscriptions.onProviderLevel(onLevel);
  }

  /**
   * Sends a notification to subscribers of provider requests. It has no number and is not retained, because a number
   * that only some receive would be a gap for the others; `after` gives its position. Returns the ids of the
   * receivers.
   */
  tell(method: NotificationName, toldOf: (level: ProviderLevel) => Told, only?: ReadonlySet<string>): Set<string> {
    const head = `{"jsonrpc":"2.0","method":"${method}","params":`;
    return this.#subscriptions.tell((level) => {
      const { params, parts } = toldOf(level);
      const text = JSON.stringify({ sessionId: this.sessionId, after: this.cursor, ...params });
      const pieces = parts.flatMap(([name, json]) => [Buffer.from(`,"${name}":`), json]);
      return Buffer.concat([Buffer.from(head + text.slice(0, -1)), ...pieces, Buffer.from("}}")]);
    }, only);
  }

  /** Sends what pi wrote to stderr to the subscribers that want it, or to one of them. It has no number. */
  tellStderr(params: object, only?: string): void {
    const told = { jsonrpc: "2.0", method: "session/stderr", params: { sessionId: this.sessionId, ...params } };
    this.#subscriptions.tellStderr(unnumberedFrame(Buffer.from(JSON.stringify(told)), this.sessionId), only);
  }

  /** Sends the text of a file that the tool `write` is about to replace to the subscribers that want it. It has no number. */
  tellFormerText({ toolCallId, path, text }: Omit<NotificationParams<"session/formerText">, "sessionId">): void {
    if (!this.#subscriptions.wantsFormerText) return;
    const params = { sessionId: this.sessionId, toolCallId, path, text };
    const told = { jsonrpc: "2.0", method: "session/formerText", params };
    this.#subscriptions.tellFormerText(unnumberedFrame(Buffer.from(JSON.stringify(told)), this.sessionId));
  }

  /** Whether extensions have background work. */
  get hasPending(): boolean {
    return this.#hasPending;
  }

  /** What a former daemon has reported of a pi that lives. */
  resume({ pending, agent }: Pick<LastEvents, "pending" | "agent">): void {
    this.#hasPending = pending.length > 0;
    this.#present.resume(agent);
  }

  /** pi has ended, or has another session. */
  childEnded(): void {
    this.pending([]);
    this.#present.clear();
  }

  /** Where a client that attaches now begins. */
  catchUp(): CatchUp {
    return this.#present.catchUp(this.cursor);
  }

  /** Reports the background work of extensions. It ends with their pi: the list is then empty. */
  pending(pending: readonly PendingItem[]): void {
    if (pending.length > 0 || this.#hasPending) this.say("pending/updated", { pending });
    this.#hasPending = pending.length > 0;
  }

  /**
   * Sends everything after the cursor and continues live without a gap. Default: live only; an existing subscription
   * keeps its position. Returns the newest number.
   */
  subscribe(subscriber: Subscriber, { after, epoch, whenAnswered, ...orders }: SubscribeOptions = {}): number {
    const { cursor } = this.#log;
    const isNew = !this.#subscriptions.has(subscriber.id);
    const subscription = this.#subscriptions.add(subscriber, orders);
    if (subscription === undefined || (!isNew && after === undefined)) return cursor;
    const begin = subscription.hold(after ?? cursor);
    const reset = this.#reset({ after, epoch });
    // The numbers that a client has may not be repeated yet.
    const start = this.isReplaying
      ? () => this.#whenReplayed(subscriber.id, () => begin(this.#reset({ after, epoch })))
      : () => begin(reset);
    if (whenAnswered === undefined) start();
    else whenAnswered(start);
    return cursor;
  }

  /** Returns whether there was a subscription. */
  unsubscribe(subscriberId: string): boolean {
    return this.#subscriptions.remove(subscriberId, true);
  }

  /** Reads after a place what {@link subscribe} would send; about `maxBytes` at most. */
  page(place: Place, maxBytes: number): LogChunk {
    const reset = this.#reset(place);
    if (reset === undefined) return this.#log.read(place.after ?? 0, maxBytes);
    const { items, upTo } = this.#log.read(0, maxBytes);
    return { items: [{ kind: "gap", gap: reset }, ...items], upTo };
  }

  /** Whether only deltas are missing after a place. */
  continues(place: Place): boolean {
    if (this.#reset(place) !== undefined) return false;
    const { after = this.cursor } = place;
    return after >= this.cursor || this.#log.holdsFrom(after + 1);
  }

  /** Frees memory once everything is stored, because the session is going to sleep. */
  rest(): Promise<void> {
    return this.#log.rest();
  }

  /** Stops all notifications. */
  close(): void {
    this.isClosed = true;
    this.#subscriptions.close();
    this.#log.close();
  }

  #say({ method, params }: OwedNotification): void {
    const former = this.#log.cursor;
    this.#publish(former, this.#log.append(method, params));
    this.#onSaid({ method, params });
  }

  #whenReplayed(subscriberId: string, start: () => void): void {
    if (this.isReplaying) this.#starts.push(() => this.#subscriptions.guard(subscriberId, start));
    else start();
  }

  #endReplay(): void {
    const unsaid = this.#unsaid;
    const starts = this.#starts;
    this.#unsaid = [];
    this.#starts = [];
    for (const each of unsaid) this.#say(each);
    for (const start of starts) start();
  }

  #reset({ after, epoch }: Place): Gap | undefined {
    if (after === undefined) return undefined;
    if (after <= this.#log.reach && (epoch === undefined || epoch === this.epoch)) return undefined;
    return { from: 0, to: after, reason: "log_reset" };
  }

  #publish(former: number, frame: Frame): void {
    // Numbers could not be reserved.
    if (frame.seq > former + 1) {
      this.#subscriptions.publishGap({ from: former + 1, to: frame.seq - 1, reason: "store_failed" });
    }
    this.#subscriptions.publish(frame);
  }
}
