import type { AgentMessage } from "../../../extension/pi-types.ts";

/** The prompt's text by the names of its sections, as they hold behind all patches, in their order. */
export type PromptText = ReadonlyMap<string, string>;

/** What stands in front of all sections, or is the prompt where it has none. */
const BASE = "prompt";

export function promptText(messages: readonly AgentMessage[]): PromptText {
  const text = new Map<string, string>();
  for (const message of messages) {
    if (message.role !== "system") continue;
    const base = textOf(message.content);
    if (base !== "") text.set(BASE, [text.get(BASE), base].filter((part) => part !== undefined).join("\n\n"));
    for (const [name, value] of Object.entries(message.sections ?? {})) {
      if (value === null) text.delete(name);
      else text.set(name, value);
    }
  }
  return text;
}

/** The names of those that are not as they were, came or went, in the order of the prompt. */
export function changedSections(before: PromptText, now: PromptText): readonly string[] {
  const names = new Set([...now.keys(), ...before.keys()]);
  return [...names].filter((name) => before.get(name) !== now.get(name));
}

function textOf(content: string | readonly { readonly type: string; readonly text?: string }[]): string {
  if (typeof content === "string") return content;
  return content.map((block) => block.text ?? "").join("");
}
