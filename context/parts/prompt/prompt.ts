import type { ExtensionAPI, ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { HostPort } from "../../../extension/engine-port.ts";
import type { Memory } from "../../../extension/memory.ts";
import type { OptimisationConfig } from "../../../protocol/optimisation/config.ts";
import type { PartReport } from "../../../protocol/optimisation/report.ts";
import type { TokenEstimator } from "../estimator/estimator.ts";
import type { PartStatus } from "../optimisation/part-states.ts";
import { ContextFiles } from "./context-files.ts";
import { PREFETCH_SECTION, Prefetch } from "./prefetch.ts";
import { PROMPT_ENTRY_TYPE, PromptRecord } from "./record.ts";
import { SkillFiles } from "./skill-files.ts";
import { skillTool } from "./skill-tool.ts";
import { Skills } from "./skills.ts";
import { StartConfig } from "./start.ts";

export interface PromptNeeds {
  readonly pi: Pick<ExtensionAPI, "appendEntry" | "getActiveTools" | "getCommands" | "registerTool">;
  readonly memory: Pick<Memory, "isOnlyAsked" | "parts">;
  readonly config: () => Pick<OptimisationConfig, "contextFiles" | "skills">;
  readonly estimator: Pick<TokenEstimator, "text">;
  readonly status: Readonly<Record<"contextFiles" | "skills", PartStatus>>;
  readonly fault: HostPort["fault"];
}

/** The parts that shorten the prompt: `contextFiles` and `skills`. */
export function addPrompt(
  { context, on, onSession, pipeline }: Pick<HostPort, "context" | "on" | "onSession" | "pipeline">,
  { pi, memory, config, estimator, status, fault }: PromptNeeds,
): void {
  const record = new PromptRecord({ pi, isReadOnly: () => memory.isOnlyAsked, fault });
  const start = new StartConfig({
    config,
    labels: () => memory.parts?.labels ?? {},
    isLate: context() !== undefined,
  });
  const contextFiles = new ContextFiles({ estimator, status: status.contextFiles, record, start });
  const files = new SkillFiles(pi);
  const prefetch = new Prefetch(status.skills, record, files);
  const skills = new Skills({ pi, config: () => config().skills, estimator, files, prefetch, start });

  const { enabled, mode } = config().skills;
  if (enabled && mode === "digest") pi.registerTool(skillTool(files));

  onSession((ctx) => {
    record.begin(ctx);
    contextFiles.begin();
    prefetch.begin();
    skills.begin();
    start.begin(ctx);
  }, "prompt");
  on("contextFiles", "before_agent_start", (event) => contextFiles.runStarts(event));
  on("skills", "before_agent_start", (event) => prefetch.runStarts(event));
  on("skills", "input", (event, ctx) => skills.input(event, ctx));
  pipeline.use("context_with_system", "sections", (messages, ctx) => contextFiles.stage(messages, ctx), "contextFiles");
  pipeline.use("context_with_system", "sections", (messages, ctx) => prefetch.stage(messages, start.at(ctx)), "skills");
  pipeline.use("context_with_system", "audit", (messages) => skills.look(messages), "skills");

  status.contextFiles.inspect((ctx) => {
    const { saved, ...figures } = contextFiles.figures();
    return report(saved * answersSince(ctx), figures, ctx);
  });
  status.skills.inspect((ctx) => {
    const { saved, ...figures } = skills.figures(ctx);
    const prefetchedTokens = estimator.text(prefetch.section ?? "");
    return report(saved, { ...figures, prefetchedTokens, section: PREFETCH_SECTION }, ctx);
  });
}

/** Number of answers since the first decision about the prompt. */
function answersSince({ sessionManager }: ExtensionContext): number {
  const entries = sessionManager.getEntries();
  const first = entries.findIndex((entry) => entry.type === "custom" && entry.customType === PROMPT_ENTRY_TYPE);
  if (first < 0) return 0;
  return entries.slice(first).filter((entry) => entry.type === "message" && entry.message.role === "assistant").length;
}

/** Most of the saved tokens would have been read from the provider's cache. */
function report(
  savedTokens: number,
  figures: PartReport["figures"],
  { model }: ExtensionContext,
): Omit<PartReport, "enabled" | "state" | "reason"> {
  const price = model?.cost.cacheRead || model?.cost.input || 0;
  return { savedTokens, savedUsd: (savedTokens * price) / 1_000_000, spentTokens: 0, spentUsd: 0, figures };
}
