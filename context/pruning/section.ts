import { withHeadSection } from "../parts/prompt/head-section.ts";
import type { PruningContext } from "./pruning-context.ts";

/** The section of the prompt that tells the model of pruning. */
const PRUNING_SECTION = "context_pruning";

type Host = Pick<PruningContext, "pipeline" | "off" | "prompts" | "mode">;

/** Adds it to each request, so that it is the same whatever has started the run, and follows a change of the mode. */
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

/** As it stands in the prompt. */
export function pruningSection(text: string): string {
  return `<${PRUNING_SECTION}>\n${text}\n</${PRUNING_SECTION}>`;
}
