import type { Gap } from "../../protocol/event.ts";
import type { NotificationName } from "../../protocol/notifications.ts";
import type { PendingItem } from "../../protocol/pending.ts";
import type { ProviderLevel } from "../../protocol/provider-level.ts";
import type { Frame } from "../frames/frame.ts";
import type { EventLog, LogChunk } from "./event-log.ts";
import type { Subscriber } from "./subscription.ts";
import { type Orders, Subscriptions } from "./subscriptions.ts";

/** What is told of a request: params, and behind them some that are JSON already. */
export interface Told {
  readonly params: object;
  readonly parts: readonly (readonly [name: string, json: Buffer])[];
}

/** Where a reader is in a log. */
export interface Place {
  /** The last number that it has. */
  readonly after?: number | undefined;
  /** The log in which it has that, if it knows. */
  readonly epoch?: string | undefined;
}

export interface SubscribeOptions extends Orders, Place {
  /** Called with what begins the notifications, to be called at the right moment. Default: at once. */
  readonly whenAnswered?: ((begin: () => void) => void) | undefined;
}

export interface JournalOptions {
  readonly sessionId: string;
  /** Names the log: numbers of another one say nothing about this. */
  readonly epoch: string;
  readonly log: EventLog;
  /** A subscriber threw, and gets nothing more. */
  readonly onFault?: (error: unknown, subscriberId: string) => void;
}

/** What a session tells: numbered, kept for those who come back, and sent to those who are there. */
export class Journal {
  readonly sessionId: string;
  readonly epoch: string;
  /** Whether the session is over for good. */
  isClosed = false;
  readonly #log: EventLog;
  readonly #subscriptions: Subscriptions;
  #hasPending = false;

  constructor({ sessionId, epoch, log, onFault }: JournalOptions) {
    this.epoch = epoch;
    this.sessionId = sessionId;
    this.#log = log;
    this.#subscriptions = new Subscriptions(sessionId, log, onFault);
  }

  get cursor(): number {
    return this.#log.cursor;
  }

  /** What an earlier daemon had told, or may have told, and not stored before it ended. */
  get lost(): Gap | undefined {
    return this.#log.lost;
  }

  /** Who is subscribed, and for what. */
  get subscriptions(): Subscriptions {
    return this.#subscriptions;
  }

  /** A record of pi, as the bytes that pi wrote. A delta is a high-rate one. */
  record(record: Buffer, generation: number, isDelta: boolean): void {
    const former = this.#log.cursor;
    this.#publish(former, this.#log.appendEvent(record, generation, isDelta));
  }

  /** A notification of the daemon's own. */
  say(method: NotificationName, params: Readonly<Record<string, unknown>>): void {
    const former = this.#log.cursor;
    this.#publish(former, this.#log.append(method, params));
  }

  /** What the most curious subscriber wants to hear of the requests to the provider. */
  get providerLevel(): ProviderLevel {
    return this.#subscriptions.providerLevel;
  }

  onProviderLevel(onLevel: () => void): void {
    this.#subscriptions.onProviderLevel(onLevel);
  }

  /**
   * A notification for those who have asked to hear of requests. It has no number and is not kept, since a number that
   * only some get would be a hole for the others; `after` says where it stands. Gives the ids of those who got it.
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

  /** Whether extensions have anything in the background. */
  get hasPending(): boolean {
    return this.#hasPending;
  }

  /** What extensions have in the background. It ends with their pi: then it is nothing. */
  pending(pending: readonly PendingItem[]): void {
    if (pending.length > 0 || this.#hasPending) this.say("pending/updated", { pending });
    this.#hasPending = pending.length > 0;
  }

  /**
   * Sends what is behind the cursor and goes on live, without a moment between. Default: live only; who is subscribed
   * already stays where it is. Gives the newest number.
   */
  subscribe(subscriber: Subscriber, { after, epoch, whenAnswered, ...orders }: SubscribeOptions = {}): number {
    const { cursor } = this.#log;
    const isNew = !this.#subscriptions.has(subscriber.id);
    const subscription = this.#subscriptions.add(subscriber, orders);
    if (subscription === undefined || (!isNew && after === undefined)) return cursor;
    const reset = this.#reset({ after, epoch });
    const begin = subscription.hold(reset === undefined ? (after ?? cursor) : 0);
    const start = (): void => begin(reset);
    if (whenAnswered === undefined) start();
    else whenAnswered(start);
    return cursor;
  }

  /** Whether there was a subscription to end. */
  unsubscribe(subscriberId: string): boolean {
    return this.#subscriptions.remove(subscriberId);
  }

  /** What is behind a place, as {@link subscribe} would send it; no more than about `maxBytes`. */
  page(place: Place, maxBytes: number): LogChunk {
    const reset = this.#reset(place);
    if (reset === undefined) return this.#log.read(place.after ?? 0, maxBytes);
    const { items, upTo } = this.#log.read(0, maxBytes);
    return { items: [{ kind: "gap", gap: reset }, ...items], upTo };
  }

  /** Whether nothing but deltas is missing behind a place. */
  continues(place: Place): boolean {
    if (this.#reset(place) !== undefined) return false;
    const { after = this.cursor } = place;
    return after >= this.cursor || this.#log.holdsFrom(after + 1);
  }

  /** Nothing is told for a while: its memory is given up when everything is stored. */
  rest(): Promise<void> {
    return this.#log.rest();
  }

  /** Nothing is told any more. */
  close(): void {
    this.isClosed = true;
    this.#subscriptions.close();
    this.#log.close();
  }

  #reset({ after, epoch }: Place): Gap | undefined {
    if (after === undefined) return undefined;
    if (after <= this.cursor && (epoch === undefined || epoch === this.epoch)) return undefined;
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
