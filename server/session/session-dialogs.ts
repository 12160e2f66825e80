import { systemClock } from "../lib/monotonic-clock.ts";
import type { ChildLife } from "./child-life.ts";
import { defaultPolicy } from "./dialog-policy.ts";
import { Dialogs } from "./dialogs.ts";
import type { Journal } from "./journal.ts";
import type { SessionOptions } from "./session-options.ts";
import type { SessionRecord } from "./session-record.ts";

export interface SessionDialogsParts {
  readonly options: SessionOptions;
  readonly record: SessionRecord;
  readonly journal: Journal;
  readonly life: ChildLife;
  readonly onPending: () => void;
}

/** The dialogs of a session, among its other parts. */
export function dialogsOf({ options, record, journal, life, onPending }: SessionDialogsParts): Dialogs {
  const { subscriptions } = journal;
  const dialogs = new Dialogs({
    sessionId: options.stored.sessionId,
    desk: options.dialogs,
    policy: options.stored.dialogPolicy ?? defaultPolicy,
    clock: systemClock,
    say: (method, params) => journal.say(method, params),
    responders: () => subscriptions.answerers,
    runId: () => life.runId,
    generation: () => record.stored.generation,
    child: () => life.child,
    onPending,
    log: options.log,
  });
  subscriptions.onAnswerers(() => dialogs.respondersChanged());
  return dialogs;
}
