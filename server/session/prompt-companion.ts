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
