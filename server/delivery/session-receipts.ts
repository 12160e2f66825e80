import { within } from "../lib/deadline.ts";
import type { OwedNotification } from "../store/children.ts";

/** A store or file that does not answer delays a session's notifications no longer than this. */
const maxSilenceMs = 2_000;

type NotificationOf = () => OwedNotification | undefined;

/** Sends receipts in order, each after it is on disk: a receipt stays true after a `kill -9` of the daemon. */
export class Receipts {
  readonly #say: (notification: OwedNotification) => void;
  readonly #waiting = new Set<NotificationOf>();
  #last: Promise<void> = Promise.resolve();

  constructor(say: (notification: OwedNotification) => void) {
    this.#say = say;
  }

  /** The receipts that wait, as they would be said now. */
  get owed(): readonly OwedNotification[] {
    return [...this.#waiting].flatMap((notificationOf) => notificationOf() ?? []);
  }

  /**
   * Says a notification, as it is at that moment, when `ready` is settled, whether fulfilled or rejected, and after all
   * earlier ones; then calls `then`.
   */
  tell(ready: Promise<unknown> | undefined, notificationOf: NotificationOf, then: () => void = () => {}): void {
    if (ready === undefined && this.#waiting.size === 0) {
      this.#tell(notificationOf, then);
      return;
    }
    this.#waiting.add(notificationOf);
    const before = this.#last;
    this.#last = (async () => {
      if (ready !== undefined) await within(ready, maxSilenceMs).catch(() => {});
      await before;
      this.#waiting.delete(notificationOf);
      this.#tell(notificationOf, then);
    })();
  }

  /** Resolves when all earlier calls have been made. */
  async told(): Promise<void> {
    while (this.#waiting.size > 0) await this.#last;
  }

  #tell(notificationOf: NotificationOf, then: () => void): void {
    const notification = notificationOf();
    if (notification !== undefined) this.#say(notification);
    then();
  }
}
