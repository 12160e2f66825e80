import { WireError } from "../../protocol/errors.ts";
import { limits } from "../config.ts";
import { SerialQueue } from "../lib/serial-queue.ts";
import { Control } from "./control.ts";
import type { Journal } from "./journal.ts";
import type { SessionOptions } from "./session-options.ts";
import type { SessionRecord } from "./session-record.ts";
import { signed } from "./signed.ts";

// How a session makes those of its parts that need little of it.

/** The queue of what writes to the session's pi. */
export function queueOf({ maxWaitingCalls: maxWaiting }: SessionOptions, onEmpty: () => void): SerialQueue {
  const onFull = (): WireError =>
    new WireError("overloaded", "Too many calls wait for this session.", { retryAfterMs: 1_000 });
  return new SerialQueue({ maxWaiting, onFull, onEmpty });
}

interface ControlParts {
  readonly options: SessionOptions;
  readonly record: SessionRecord;
  readonly journal: Journal;
}

/** Who may act in the session. */
export function controlOf({ options: { stored }, record, journal }: ControlParts): Control {
  return new Control({
    sessionId: stored.sessionId,
    policy: stored.control ?? "shared",
    onPolicy: (policy) => record.governedBy(policy),
    say: (control, change, by) => journal.say("session/controlChanged", { ...signed(by), control, change }),
    graceMs: limits.controlGraceMs,
  });
}
