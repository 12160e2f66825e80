import type { By } from "../../protocol/client-identity.ts";
import type { SerialQueue } from "../lib/serial-queue.ts";
import type { Child } from "../pi/child.ts";
import type { SessionState } from "./session-state.ts";

/**
 * The purpose of a child. `prompt`: the child gets the held pushes without handing them over, because the prompt goes
 * first. `reading`: the session file is not checked for foreign writes.
 */
export type StartPurpose = "work" | "prompt" | "reading";

/** A session's child and its runs, for the parts that use them. */
export interface SessionCore {
  readonly sessionId: string;
  /** pi's session file. */
  readonly file: string;
  readonly state: SessionState;
  /** The queue that serialises all writes to the session's pi. */
  readonly scope: SerialQueue;
  readonly runId: string | undefined;
  /** Number of runs so far. */
  readonly runsStarted: number;
  /**
   * Returns the child, and starts one if necessary. Throws errors of starting, and `session_closed`. A child started
   * for a prompt gets the held pushes without handing them over: the prompt goes first.
   */
  awake(purpose?: StartPurpose): Promise<Child>;
  /** Reads pi's state again and reports changes. */
  refresh(child: Child): Promise<void>;
  /** Resolves when no start is in progress, whatever its outcome. */
  startOver(): Promise<void>;
  /**
   * Records an active run, with the prompt that began it, or the client whose call did; returns its id. A run that is
   * recorded already stays.
   */
  runStarted(promptId?: string, by?: By): string;
  /** Records that an abort is about to be written to pi. Resolves when that is stored. */
  abortSent(by?: By): Promise<void>;
  /** Resolves when the child of a former daemon has answered this one, or has ended. */
  leftOver(): Promise<void>;
  /** Resolves when the next run begins. */
  nextRun(): Promise<void>;
  /** Resolves when the last child has been cleaned up. */
  cleaned(): Promise<void>;
  /** Resolves when no run is active. */
  settled(): Promise<void>;
}

/** Whether the child belongs to the session: another session may have taken it over. */
export function isChildOf({ state }: SessionCore, child: Child): boolean {
  return (state.kind === "idle" || state.kind === "running") && state.child === child;
}
