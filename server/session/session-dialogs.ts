import type { By } from "../../protocol/client-identity.ts";
import type { ChildLife } from "../children/child-life.ts";
import type { Control } from "../core/control.ts";
import type { SessionRecord } from "../core/session-record.ts";
import { defaultPolicy } from "../dialogs/dialog-policy.ts";
import { Dialogs } from "../dialogs/dialogs.ts";
import { systemClock } from "../lib/monotonic-clock.ts";
import type { Journal } from "../log/journal.ts";
import type { SessionOptions } from "./session-options.ts";

export interface SessionDialogsParts {
  readonly options: SessionOptions;
  readonly record: SessionRecord;
  readonly journal: Journal;
  readonly life: ChildLife;
  readonly control: Pick<Control, "allows">;
  /** The client whose prompt or push caused the current activity of extensions. */
  readonly owner: () => By | undefined;
  readonly onPending: () => void;
}

/** Connects a session's dialogs to its other parts. */
export function dialogsOf(parts: SessionDialogsParts): Dialogs {
  const { options, record, journal, life, control, owner, onPending } = parts;
  const { subscriptions } = journal;
  const dialogs = new Dialogs({
    sessionId: options.stored.sessionId,
    registry: options.dialogs,
    policy: options.stored.dialogPolicy ?? defaultPolicy,
    clock: systemClock,
    say: (method, params) => journal.say(method, params),
    responders: () => subscriptions.answerers,
    owner,
    isResponder: (clientId) => subscriptions.isAnswerer(clientId) && control.allows(clientId),
    announce: (child, dialog) => {
      // A child that belongs to another session has other extensions.
      if (life.child !== child) return undefined;
      return life.child.link.send({ kind: "dialog", ...dialog, reason: "no_responder" }).then(
        () => {},
        (err: unknown) => options.log.warn({ err }, "cannot tell extensions that no client can answer a dialog"),
      );
    },
    runId: () => life.runId,
    generation: () => record.stored.generation,
    child: () => life.child,
    onPending,
    onRunWaits: (isWaiting) => options.tracker.runWaits(options.stored.sessionId, isWaiting),
    log: options.log,
  });
  subscriptions.onAnswerers(() => dialogs.respondersChanged());
  return dialogs;
}
