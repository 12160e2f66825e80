import type { AgentMessage } from "../../../extension/pi-types.ts";

/** The prompt's text by section name after all patches, in prompt order. */
export type PromptText = ReadonlyMap<string, string>;

/** The name of the text before all sections. */
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

/** The names of changed, added and removed sections, in prompt order. */
export function changedSections(before: PromptText, now: PromptText): readonly string[] {
  const names = new Set([...now.keys(), ...before.keys()]);
  return [...names].filter((name) => before.get(name) !== now.get(name));
}

function textOf(content: string | readonly { readonly type: string; readonly text?: string }[]): string {
  if (typeof content === "string") return content;
  return content.map((block) => block.text ?? "").join("");
}
