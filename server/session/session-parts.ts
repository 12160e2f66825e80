import type { Logger } from "pino";
import { WireError } from "../../protocol/errors.ts";
import { ChildSupervisor, type ChildSupervisorOptions } from "../children/child-supervisor.ts";
import { limits } from "../configuration/limits.ts";
import { SessionContext } from "../context/session-context.ts";
import { attributionOf } from "../core/attribution.ts";
import { Control } from "../core/control.ts";
import type { SessionRecord } from "../core/session-record.ts";
import { isInMemoryAlone } from "../custody/ephemeral.ts";
import { SerialQueue } from "../lib/serial-queue.ts";
import type { Journal } from "../log/journal.ts";
import type { Child } from "../pi/child.ts";
import type { Session } from "./session.ts";
import type { SessionOptions } from "./session-options.ts";

// Constructors of session parts with few dependencies.

/** The queue of writes to the session's pi. */
export function queueOf({ maxWaitingCalls: maxWaiting }: SessionOptions, onEmpty: () => void): SerialQueue {
  const onFull = (): WireError =>
    new WireError("overloaded", "Too many calls wait for this session.", { retryAfterMs: 1_000 });
  return new SerialQueue({ maxWaiting, onFull, onEmpty });
}

interface Made {
  readonly options: SessionOptions;
  readonly record: SessionRecord;
  readonly journal: Journal;
}

export function controlOf({ options: { stored }, record, journal }: Made, onChange: () => void): Control {
  return new Control({
    sessionId: stored.sessionId,
    policy: stored.control ?? "shared",
    onPolicy: (policy) => record.governedBy(policy),
    say: (control, change, by) => {
      journal.say("session/controlChanged", { ...attributionOf(by), control, change });
      onChange();
    },
    graceMs: limits.controlGraceMs,
  });
}

/**
 * The context of the session. `onLost` is called during the failed start, so that its callers receive the reason
 * first.
 */
export function contextOf(made: Made, onRestored: () => void, onLost: () => void): SessionContext {
  return new SessionContext({ ...made, onRestored, onLost });
}

/** Sends a child its held pushes. */
export function resumeIn({ scope, pushing }: Pick<Session, "scope" | "pushing">, child: Child, log: Logger): void {
  scope
    .run(() => pushing.resume(child, "now"))
    .catch((error: unknown) => log.warn({ err: error }, "cannot send held pushes to the helper"));
}

/** Keeps the session's child running, and ends it. */
export function supervisorOf(
  { options, record, journal }: Made,
  session: Pick<Session, "sessionId" | "scope" | "pushing" | "dialogs" | "awake">,
  further: Pick<ChildSupervisorOptions, "life" | "onChange" | "beforeEnd">,
): ChildSupervisor {
  return new ChildSupervisor({
    ...options,
    ...further,
    sessionId: session.sessionId,
    scope: session.scope,
    awake: () => session.awake(),
    pushing: () => session.pushing,
    reasons: [
      () => (record.stored.ephemeral === true ? "ephemeral" : undefined),
      () => (session.dialogs.size > 0 ? "dialog" : undefined),
      () => (journal.hasPending ? "background" : undefined),
    ],
    idleAfterMs: () => record.stored.idleAfterMs ?? options.idleAfterMs,
  });
}

/** Decides the deliveries and prompts that an ended child left open. */
export async function recount(
  { sessionId, prompts }: Pick<Session, "sessionId" | "prompts">,
  { stored }: SessionRecord,
  { tracker, log }: SessionOptions,
  at: number,
): Promise<void> {
  try {
    tracker.applyToAll(sessionId, { kind: isInMemoryAlone(stored) ? "sessionLost" : "childEnded", at });
    await prompts.childEnded();
  } catch (error) {
    log.error({ err: error }, "cannot account for the prompts and deliveries of an ended child");
  }
}
