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
  /** Stores changes of the session's record. */
  readonly save: (stored: StoredSession) => Promise<void>;
  /** Writes and syncs now. Returns whether that succeeded. */
  readonly flush: (upTo: number) => boolean;
  readonly prompts: PromptStore;
  /** The owner recorded in leases of session files. */
  readonly taker: LeaseTaker;
  /** Creates a session from the branch of this one that ends with the entry, and returns its id. */
  readonly branchOff: (from: Session, leafId: string) => Promise<string>;
  /**
   * A hello names another session with this file in the child: finds it, and gives it the child. Must be synchronous.
   */
  readonly succeed: (from: Session, child: Child, hello: Hello, file: string) => void;
  /** Sends the session's context to a child that has just started. Throws `context_transport_failed`. */
  readonly giveContext: (child: Child, stored: StoredSession, signal: AbortSignal) => Promise<void>;
  /** Closes a session whose context is lost. Must not wait. */
  readonly abandon: (session: Session) => void;
  readonly tracker: DeliveryTracker;
  readonly logs: Logs;
  /** Bytes read from the end of pi's session file for a backfill. */
  readonly maxRefillBytes: number;
  /** The messages of a snapshot. */
  readonly maxSnapshotBytes: number;
  readonly dialogs: DialogRegistry;
  /** Maximum size of one reported message list or payload. */
  readonly maxProviderBodyBytes: number;
  /** Maximum number of waiting calls. */
  readonly maxWaitingCalls: number;
  readonly calls: Omit<PiCallsOptions, "refresh">;
  /** pi's last answers, of all sessions. */
  readonly answers: Pick<CachedAnswersOptions, "cache" | "store" | "maxBytes">;
  readonly parts: Omit<PartsConfiguringOptions, "record" | "journal">;
  /** For sessions that do not set it. */
  readonly idleAfterMs: number;
  readonly child: Pick<ChildLimits, "startTimeoutMs" | "maxRecordBytes">;
  readonly responsiveness: ResponsivenessLimits;
  /** Limits on starts of its pi. */
  readonly rates: StartRateLimits;
  /** Milliseconds until an automatic start is allowed; 0: now. */
  readonly admitStart: () => number;
  /** The session has changed. */
  readonly onChange: () => void;
  readonly log: Logger;
}
