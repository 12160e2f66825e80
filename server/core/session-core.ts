import type { By } from "../../protocol/client-identity.ts";
import type { SerialQueue } from "../lib/serial-queue.ts";
import type { Child } from "../pi/child.ts";
import type { SessionState } from "./session-state.ts";

/**
 * What a child is wanted for. One for a prompt gets the held pushes without handing them over: the prompt goes first. For
 * reading, nothing is looked for that another may have written to the session's file.
 */
export type StartPurpose = "work" | "prompt" | "reading";

/** What the parts of a session see of it. */
export interface SessionCore {
  readonly sessionId: string;
  /** pi's session file. */
  readonly file: string;
  readonly state: SessionState;
  /** The queue on which everything is serialised that writes to the session's pi. */
  readonly scope: SerialQueue;
  readonly dialogs: {
    cancelAll(by: "abort" | "clear_queue"): void;
    /** Cancels the open dialogs, and those that come until the work has ended. */
    whileAborting<T>(work: () => Promise<T>): Promise<T>;
  };
  readonly runId: string | undefined;
  /** How many runs there have been. */
  readonly runsStarted: number;
  /**
   * The child; one is started if there is none. Throws what starting can throw, and `session_closed`. One that is started
   * for a prompt gets the held pushes without handing them over: the prompt goes first.
   */
  awake(purpose?: StartPurpose): Promise<Child>;
  /** Resolves when no start is under way, whatever came of it. */
  startOver(): Promise<void>;
  /**
   * Notes that a run is on, with the prompt that began it, or the client whose call did so without one, and returns its id.
   * One that is noted already stays.
   */
  runStarted(promptId?: string, by?: By): string;
  /** Notes that an abort is being written to pi. */
  abortSent(by?: By): void;
  /** Resolves when the next run begins. */
  nextRun(): Promise<void>;
  /** Resolves when nothing is left of the last child. */
  cleaned(): Promise<void>;
  /** Resolves when no run is on. */
  settled(): Promise<void>;
}

/** Whether the child is the session's: another session may have taken it over. */
export function isChildOf({ state }: SessionCore, child: Child): boolean {
  return (state.kind === "idle" || state.kind === "running") && state.child === child;
}
