import { WireError } from "../../protocol/errors.ts";
import type { SessionState } from "../core/session-state.ts";
import type { Child } from "../pi/child.ts";

/** What pushes and budgets have to do with prompts. */
export interface PromptCompanion {
  /** Throws where no prompt may be given to pi. */
  admitPrompt(): Promise<void>;
  /** Puts into the transcript whatever waits for a prompt. */
  beforePrompt(child: Child): Promise<void>;
  /** No run came of the prompt: what waits gets its moment otherwise. */
  handOver(): Promise<void>;
}

/** Whether what waits beside a prompt has to get its moment when the prompt has failed so. */
export function leavesRest(error: unknown, { kind }: SessionState): boolean {
  if (!(error instanceof WireError) || error.kind === "child_exited") return false;
  // No pi is started for what waits, where none was for the prompt.
  return error.kind !== "budget_exceeded" || kind === "idle" || kind === "running";
}
