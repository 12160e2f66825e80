import type { NotificationName } from "../../protocol/notifications.ts";
import type { PendingItem } from "../../protocol/pending.ts";
import type { ProviderLevel } from "../../protocol/provider-level.ts";
import { EventLog, type EventLogOptions, type Replay } from "./event-log.ts";
import { type Subscriber, Subscriptions } from "./subscriptions.ts";

/** What is told of a request: params, and behind them some that are JSON already. */
export interface Told {
  readonly params: object;
  readonly parts: readonly (readonly [name: string, json: Buffer])[];
}

/** What a session tells: numbered, kept for those who come back, and sent to those who are there. */
export class Journal {
  readonly #sessionId: string;
  readonly #log: EventLog;
  readonly #subscriptions = new Subscriptions();
  #hasPending = false;

  constructor(options: EventLogOptions) {
    this.#sessionId = options.sessionId;
    this.#log = new EventLog(options);
  }

  get cursor(): number {
    return this.#log.cursor;
  }

  /** A record of pi, as the bytes that pi wrote. */
  record(record: Buffer, generation: number, isDelta: boolean): void {
    this.#subscriptions.publish(this.#log.appendEvent(record, generation, isDelta));
  }

  /** A notification of the daemon's own. */
  say(method: NotificationName, params: Readonly<Record<string, unknown>>): void {
    this.#subscriptions.publish(this.#log.append(method, params));
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
      const text = JSON.stringify({ sessionId: this.#sessionId, after: this.cursor, ...params });
      const pieces = parts.flatMap(([name, json]) => [Buffer.from(`,"${name}":`), json]);
      return Buffer.concat([Buffer.from(head + text.slice(0, -1)), ...pieces, Buffer.from("}}")]);
    }, only);
  }

  /** What extensions have in the background. It ends with their pi: then it is nothing. */
  pending(pending: readonly PendingItem[]): void {
    if (pending.length > 0 || this.#hasPending) this.say("pending/updated", { pending });
    this.#hasPending = pending.length > 0;
  }

  /** Replays what is behind the cursor and goes on live, without a moment between. Default: live only. */
  subscribe(subscriber: Subscriber, after: number = this.#log.cursor, provider?: ProviderLevel): Replay {
    const replay = this.#log.since(after);
    for (const frame of replay.frames) subscriber.send(frame);
    this.#subscriptions.add(subscriber, provider);
    return replay;
  }

  /** Whether there was a subscription to end. */
  unsubscribe(subscriberId: string): boolean {
    return this.#subscriptions.remove(subscriberId);
  }
}
