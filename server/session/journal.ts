import type { NotificationName } from "../../protocol/notifications.ts";
import { EventLog, type EventLogOptions, type Replay } from "./event-log.ts";
import { type Subscriber, Subscriptions } from "./subscriptions.ts";

/** What a session tells: numbered, kept for those who come back, and sent to those who are there. */
export class Journal {
  readonly #log: EventLog;
  readonly #subscriptions = new Subscriptions();

  constructor(options: EventLogOptions) {
    this.#log = new EventLog(options);
  }

  get cursor(): number {
    return this.#log.cursor;
  }

  /** A record of pi, as the bytes that pi wrote. */
  record(record: Buffer, generation: number): void {
    this.#subscriptions.publish(this.#log.appendEvent(record, generation));
  }

  /** A notification of the daemon's own. */
  say(method: NotificationName, params: Readonly<Record<string, unknown>>): void {
    this.#subscriptions.publish(this.#log.append(method, params));
  }

  /** Replays what is behind the cursor and goes on live, without a moment between. Default: live only. */
  subscribe(subscriber: Subscriber, after: number = this.#log.cursor): Replay {
    const replay = this.#log.since(after);
    for (const frame of replay.frames) subscriber.send(frame);
    this.#subscriptions.add(subscriber);
    return replay;
  }

  /** Whether there was a subscription to end. */
  unsubscribe(subscriberId: string): boolean {
    return this.#subscriptions.remove(subscriberId);
  }
}
