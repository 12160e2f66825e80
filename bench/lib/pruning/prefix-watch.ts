import type { LogEntry } from "../../../provider/log.ts";
import { commonMessages, messagesOf, type PayloadMessage, withoutReminder } from "./payload.ts";

/** Watches whether requests begin with all of the request before them. */
export class PrefixWatch {
  /** Requests that may begin with another, and those that do. */
  readonly counts = { requests: 0, same: 0 };
  #before: readonly PayloadMessage[] | undefined;

  /** `mayDiffer`: the model has just compressed, and what was earlier has changed by its own wish. */
  take(request: LogEntry, mayDiffer: boolean): void {
    const messages = withoutReminder(messagesOf(request));
    if (this.#before !== undefined && !mayDiffer) {
      this.counts.requests += 1;
      if (commonMessages(this.#before, messages) === this.#before.length) this.counts.same += 1;
    }
    this.#before = messages;
  }
}
