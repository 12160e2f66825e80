import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { PartReport } from "../../../protocol/optimisation/report.ts";
import type { PartContext } from "../optimisation/part-context.ts";
import { ContextFiles } from "./context-files.ts";
import { PREFETCH_SECTION, Prefetch } from "./prefetch.ts";
import { PROMPT_ENTRY_TYPE, PromptRecord } from "./record.ts";
import { SkillFiles } from "./skill-files.ts";
import { skillTool } from "./skill-tool.ts";
import { Skills } from "./skills.ts";
import { StartConfig } from "./start.ts";

/** The parts that make the prompt shorter: `contextFiles` and `skills`. */
export function addPrompt(host: PartContext): void {
  const record = new PromptRecord(host);
  const start = new StartConfig(host);
  const contextFiles = new ContextFiles({ host, record, start });
  const files = new SkillFiles(host.pi);
  const prefetch = new Prefetch(host, record, files);
  const skills = new Skills({ host, files, prefetch, start });

  const { enabled, mode } = host.config().skills;
  if (enabled && mode === "digest") host.pi.registerTool(skillTool(files));

  host.onSession((ctx) => {
    record.begin(ctx);
    contextFiles.begin();
    prefetch.begin();
    skills.begin();
    start.begin(ctx);
  }, "prompt");
  host.on("contextFiles", "before_agent_start", (event) => contextFiles.runStarts(event));
  host.on("skills", "before_agent_start", (event) => prefetch.runStarts(event));
  host.on("skills", "input", (event, ctx) => skills.input(event, ctx));
  host.pipeline.use(
    "context_with_system",
    "sections",
    (messages, ctx) => contextFiles.stage(messages, ctx),
    "contextFiles",
  );
  host.pipeline.use(
    "context_with_system",
    "sections",
    (messages, ctx) => prefetch.stage(messages, start.at(ctx)),
    "skills",
  );
  host.pipeline.use("context_with_system", "audit", (messages) => skills.look(messages), "skills");

  host.inspect("contextFiles", (ctx) => {
    const { saved, ...figures } = contextFiles.figures();
    return report(saved * answersSince(ctx), figures, ctx);
  });
  host.inspect("skills", (ctx) => {
    const { saved, ...figures } = skills.figures(ctx);
    const prefetchedTokens = host.estimator.text(prefetch.section ?? "");
    return report(saved, { ...figures, prefetchedTokens, section: PREFETCH_SECTION }, ctx);
  });
}

/** Answers behind the first decision of the prompt. */
function answersSince({ sessionManager }: ExtensionContext): number {
  const entries = sessionManager.getEntries();
  const first = entries.findIndex((entry) => entry.type === "custom" && entry.customType === PROMPT_ENTRY_TYPE);
  if (first < 0) return 0;
  return entries.slice(first).filter((entry) => entry.type === "message" && entry.message.role === "assistant").length;
}

/** What was saved would mostly have been read from the provider's cache. */
function report(
  savedTokens: number,
  figures: PartReport["figures"],
  { model }: ExtensionContext,
): Omit<PartReport, "enabled" | "state" | "reason"> {
  const price = model?.cost.cacheRead || model?.cost.input || 0;
  return { savedTokens, savedUsd: (savedTokens * price) / 1_000_000, spentTokens: 0, spentUsd: 0, figures };
}
