import { withHeadSection } from "../parts/prompt/head-section.ts";
import type { PruningServices } from "./pruning-services.ts";

/** The prompt section about pruning. */
const PRUNING_SECTION = "context_pruning";

type Host = Pick<PruningServices, "pipeline" | "off" | "prompts" | "mode">;

/**
 * Adds the section to each request, so that it does not depend on what started the run and follows a change of the mode.
 */
export function addSection({ pipeline, off, prompts, mode }: Host): void {
  pipeline.use(
    "context_with_system",
    "sections",
    (messages, ctx) => {
      if (off(ctx) !== undefined) return undefined;
      return withHeadSection(
        messages,
        PRUNING_SECTION,
        pruningSection(prompts.text(mode.of(ctx) === "manual" ? "manual" : "system")),
      );
    },
    "pruning",
  );
}

/** The section with its tags. */
export function pruningSection(text: string): string {
  return `<${PRUNING_SECTION}>\n${text}\n</${PRUNING_SECTION}>`;
}
