import type { HostPort } from "../../../extension/engine-port.ts";
import type { AgentMessage, SystemMessage } from "../../../extension/pi-types.ts";
import type { OptimisationConfig } from "../../../protocol/optimisation/config.ts";
import { promptText } from "../cache/sections.ts";
import type { TokenEstimator } from "../estimator/estimator.ts";
import type { PartStatus } from "../optimisation/part-states.ts";
import { type PromptForm, PromptForms } from "./prompt-form.ts";
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

/**
 * Sorts the items of a section that lists tools, because pi writes them in the order of registration. `undefined`:
 * nothing to sort, or an unknown form.
 */
export function sortedSection(name: string, text: string): string | undefined {
  if (name !== "tools" && name !== "rules") return undefined;
  const [open, close] = [`<${name}>\n`, `\n</${name}>`];
  if (!text.startsWith(open) || !text.endsWith(close)) return undefined;
  const content = text.slice(open.length, -close.length);
  // A paragraph follows the list of tools.
  const end = name === "tools" ? content.indexOf("\n\n") : -1;
  const list = end === -1 ? content : content.slice(0, end);
  if (!list.startsWith("- ")) return undefined;
  // An item can span several lines.
  const items = list.split(/\n(?=- )/);
  const sorted = items.toSorted();
  if (sorted.every((item, at) => item === items[at])) return undefined;
  return `${open}${sorted.join("\n")}${end === -1 ? "" : content.slice(end)}${close}`;
}

/**
 * Returns a flat section under a heading instead of in a tag. `undefined`: the section is not flat and stays unchanged.
 * Skills, borders of context files and summaries are not flat, because their tags delimit foreign text.
 */
export function markdownSection(name: string, text: string): string | undefined {
  const [open, close] = [`<${name}>\n`, `\n</${name}>`];
  if (!text.startsWith(open) || !text.endsWith(close) || text.length < open.length + close.length) return undefined;
  const content = text.slice(open.length, -close.length);
  if (tag.test(content) || heading.test(content)) return undefined;
  return `## ${name}\n${content}`;
}

/** A line that begins with a tag. The pattern stays within a line, because prompts can have many empty lines. */
const tag = /^[^\S\n\r\u2028\u2029]*<\/?[A-Za-z][A-Za-z0-9_-]*[\s>]/m;
/** A heading of the same or a higher level; text after it would not belong to the section. */
const heading = /^#{1,2} |^(?:=+|-+)\s*$/m;
