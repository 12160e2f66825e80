import type { BeforeAgentStartEvent } from "@earendil-works/pi-coding-agent";

type PromptOptions = BeforeAgentStartEvent["systemPromptOptions"];

/**
 * The prompt that another extension has forced on a run. pi puts that text in the place of the whole head behind our
 * stages, which would lose the section, so that the text itself gets it. pi keeps the options that it shows before the
 * run for as long as the run goes on.
 */
export class ForcedPrompt {
  #options: PromptOptions | undefined;

  /** A run is about to begin. */
  runStarts({ systemPromptOptions }: BeforeAgentStartEvent): void {
    this.#options = systemPromptOptions;
  }

  /** Where a prompt is forced, it has the section from here on, once. */
  add(section: string): void {
    const forced = this.#options?.forceSystemPrompt;
    if (this.#options === undefined || typeof forced !== "string" || forced.includes(section)) return;
    this.#options.forceSystemPrompt = `${forced}\n\n${section}`;
  }
}
