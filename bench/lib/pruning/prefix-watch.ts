import type { LogEntry } from "../../../provider/log.ts";
import { commonMessages, messagesOf, type PayloadMessage, withoutReminder } from "./payload.ts";

/** Checks whether requests begin with the complete previous request. */
export class PrefixWatch {
  /** Number of compared requests, and of those with the same prefix. */
  readonly counts = { requests: 0, same: 0 };
  #before: readonly PayloadMessage[] | undefined;

  /** `mayDiffer`: the model has just compressed, which changes earlier context. */
  take(request: LogEntry, mayDiffer: boolean): void {
    const messages = withoutReminder(messagesOf(request));
    if (this.#before !== undefined && !mayDiffer) {
      this.counts.requests += 1;
      if (commonMessages(this.#before, messages) === this.#before.length) this.counts.same += 1;
    }
    this.#before = messages;
  }
}
