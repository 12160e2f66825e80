import { WireError } from "../../protocol/errors.ts";
import type { SessionState } from "../core/session-state.ts";
import type { Child } from "../pi/child.ts";

/** How pushes and budgets take part in prompts. */
export interface PromptCompanion {
  /** Throws if no prompt may be sent to pi. */
  admitPrompt(): Promise<void>;
  /** Appends pushes that wait for a prompt to the transcript. */
  beforePrompt(child: Child): Promise<void>;
  /** The prompt started no run, so waiting pushes are handed over in another way. */
  handOver(): Promise<void>;
}

/** Whether waiting pushes must be handed over in another way after this failure of the prompt. */
export function leavesRest(error: unknown, { kind }: SessionState): boolean {
  if (!(error instanceof WireError) || error.kind === "child_exited") return false;
  // No pi is started for pushes if none was for the prompt.
  return error.kind !== "budget_exceeded" || kind === "idle" || kind === "running";
}
