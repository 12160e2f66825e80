import type { HostPort } from "../../../extension/engine-port.ts";
import type { AgentMessage, SystemMessage } from "../../../extension/pi-types.ts";
import type { OptimisationConfig } from "../../../protocol/optimisation/config.ts";
import { promptText } from "../cache/sections.ts";
import type { TokenEstimator } from "../estimator/estimator.ts";
import type { PartStatus } from "../optimisation/part-states.ts";
import { markdownSection } from "./markdown-sections.ts";
import { type PromptForm, PromptForms } from "./prompt-form.ts";
import { sortedSection } from "./sorted-sections.ts";
import { type WrapperReport, wrapperReport } from "./wrapper-report.ts";

const part = "format";

export interface FormatNeeds {
  readonly config: () => Pick<OptimisationConfig, "cache" | "format">;
  readonly estimator: Pick<TokenEstimator, "text">;
  readonly status: PartStatus;
}

/**
 * Counts the tokens of the prompt's wrappers, and writes flat sections as markdown if configured. Add it after all other
 * parts that write sections, because they search for the tags.
 */
export function addFormat(
  { pipeline, onSession, boundary }: Pick<HostPort, "pipeline" | "onSession" | "boundary">,
  { config, estimator, status }: FormatNeeds,
): void {
  const forms = new PromptForms({ onSession, boundary }, config);
  let prompt = "";
  let report: { readonly of: string; readonly is: WrapperReport } | undefined;
  pipeline.use("context_with_system", "sections", (messages) => withForm(messages, forms.form), part);
  pipeline.use(
    "context_with_system",
    "audit",
    (messages) => {
      const { enabled, report: isReporting } = config().format;
      prompt = enabled && isReporting ? [...promptText(messages).values()].join("\n\n") : "";
    },
    part,
  );
  status.inspect(() => {
    if (report?.of !== prompt) report = { of: prompt, is: wrapperReport(prompt, (text) => estimator.text(text)) };
    return { savedTokens: 0, savedUsd: 0, spentTokens: 0, spentUsd: 0, figures: figuresOf(report.is, forms.form) };
  });
}

/** The messages with the prompt as it is written in this session. Returns the same list if nothing changes. */
export function withForm(messages: readonly AgentMessage[], form: PromptForm): readonly AgentMessage[] {
  if (!form.isSorted && form.sections === "xml") return messages;
  let isChanged = false;
  const formed = messages.map((message) => {
    const made = message.role === "system" ? formedMessage(message, form) : message;
    isChanged ||= made !== message;
    return made;
  });
  return isChanged ? formed : messages;
}

function formedMessage(message: SystemMessage, { isSorted, sections: style }: PromptForm): SystemMessage {
  const { sections } = message;
  if (sections === undefined) return message;
  const formed: Record<string, string | null> = {};
  let isChanged = false;
  for (const [name, text] of Object.entries(sections)) {
    const sorted = text !== null && isSorted ? (sortedSection(name, text) ?? text) : text;
    const made = sorted !== null && style === "markdown" ? (markdownSection(name, sorted) ?? sorted) : sorted;
    isChanged ||= made !== text;
    Object.defineProperty(formed, name, { value: made, enumerable: true, configurable: true, writable: true });
  }
  return isChanged ? { ...message, sections: formed } : message;
}

/** Tokens of wrappers and of content, by wrapper; the most expensive wrappers first. */
function figuresOf({ wrappers, total }: WrapperReport, { sections }: PromptForm) {
  const all = [...wrappers].toSorted(([, a], [, b]) => b.wrapper - a.wrapper);
  const wrapper = all.reduce((sum, [, one]) => sum + one.wrapper, 0);
  return {
    sections,
    promptTokens: total,
    wrapperTokens: wrapper,
    wrapperShare: total === 0 ? 0 : wrapper / total,
    ...Object.fromEntries(
      all.flatMap(([name, one]) => [
        [`${name}.count`, one.count],
        [`${name}.wrapperTokens`, one.wrapper],
        [`${name}.contentTokens`, one.content],
      ]),
    ),
  };
}
