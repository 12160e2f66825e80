import type { BeforeAgentStartEvent } from "@earendil-works/pi-coding-agent";

type PromptOptions = BeforeAgentStartEvent["systemPromptOptions"];

/**
 * The prompt that another extension has forced on a run. After our stages pi replaces the whole head by that text, which
 * would lose the section, so the text itself gets it. pi keeps the same options for the whole run.
 */
export class ForcedPrompt {
  #options: PromptOptions | undefined;

  /** Call at `before_agent_start`. */
  runStarts({ systemPromptOptions }: BeforeAgentStartEvent): void {
    this.#options = systemPromptOptions;
  }

  /** Appends the section to a forced prompt, once. */
  add(section: string): void {
    const forced = this.#options?.forceSystemPrompt;
    if (this.#options === undefined || typeof forced !== "string" || forced.includes(section)) return;
    this.#options.forceSystemPrompt = `${forced}\n\n${section}`;
  }
}
