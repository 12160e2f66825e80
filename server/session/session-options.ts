import type { Logger } from "pino";
import type { CachedAnswersOptions } from "../children/cached-answers.ts";
import type { StartSinks } from "../children/child-source.ts";
import type { PiCallsOptions } from "../children/pi-calls.ts";
import type { ResponsivenessLimits } from "../children/responsiveness.ts";
import type { StartRateLimits } from "../children/start-rate-limit.ts";
import type { PartsConfiguringOptions } from "../context/parts-configuring.ts";
import type { DeliveryTracker } from "../delivery/tracker.ts";
import type { DialogRegistry } from "../dialogs/dialog-registry.ts";
import type { Logs } from "../log/logs.ts";
import type { Child, ChildLimits } from "../pi/child.ts";
import type { LeaseTaker } from "../pi/lease.ts";
import type { Hello } from "../pi/link.ts";
import type { ReadyState } from "../pi/ready-state.ts";
import type { PromptStore } from "../store/prompts.ts";
import type { StoredSession } from "../store/sessions.ts";
import type { Session } from "./session.ts";

export interface SessionOptions {
  readonly stored: StoredSession;
  /** Starts a pi for the session. */
  readonly start: (
    stored: StoredSession,
    sinks: StartSinks,
  ) => Promise<{ readonly child: Child; readonly ready: ReadyState }>;
  /** Keeps what has changed of the session's record. */
  readonly save: (stored: StoredSession) => Promise<void>;
  /** Brings to disk, now, what was saved. Gives whether it is there. */
  readonly flush: (upTo: number) => boolean;
  readonly prompts: PromptStore;
  /** The daemon, as it takes leases of session files. */
  readonly taker: LeaseTaker;
  /** Makes a session of the branch of this one that ends with the entry, and gives its id. */
  readonly branchOff: (from: Session, leafId: string) => Promise<string>;
  /** The session inside the child is another one, with this file: finds it, and gives it the child. Must not wait. */
  readonly succeed: (from: Session, child: Child, hello: Hello, file: string) => void;
  /** Brings the session's context to a child that has just started. Throws `context_transport_failed`. */
  readonly giveContext: (child: Child, stored: StoredSession, signal: AbortSignal) => Promise<void>;
  /** Closes a session that cannot have its context any more. Must not wait. */
  readonly abandon: (session: Session) => void;
  readonly tracker: DeliveryTracker;
  readonly logs: Logs;
  /** What is read of the end of pi's session file for what the log lacks. */
  readonly maxRefillBytes: number;
  /** The messages of a snapshot. */
  readonly maxSnapshotBytes: number;
  readonly dialogs: DialogRegistry;
  /** One message list or payload that subscribers are told of. */
  readonly maxProviderBodyBytes: number;
  /** Calls that may wait for their turn. */
  readonly maxWaitingCalls: number;
  readonly calls: Omit<PiCallsOptions, "refresh">;
  /** What pi answered last, of all sessions. */
  readonly answers: Pick<CachedAnswersOptions, "cache" | "store" | "maxBytes">;
  readonly parts: Omit<PartsConfiguringOptions, "record" | "journal">;
  /** For sessions that say nothing of it. */
  readonly idleAfterMs: number;
  readonly child: Pick<ChildLimits, "startTimeoutMs" | "maxRecordBytes">;
  readonly responsiveness: ResponsivenessLimits;
  /** Of the starts of its pi. */
  readonly rates: StartRateLimits;
  /** Milliseconds until a start may be made that no client asks for; 0: now. */
  readonly admitStart: () => number;
  /** The session is not as it was. */
  readonly onChange: () => void;
  readonly log: Logger;
}
