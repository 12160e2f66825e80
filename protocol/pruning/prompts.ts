/** The texts that a directory may have in the place of the built-in ones. */
export const PROMPT_FILES = [
  "system.md",
  "manual.md",
  "compress.md",
  "limit-strong.md",
  "limit-soft.md",
  "turn.md",
  "iteration.md",
] as const;
export type PromptFile = (typeof PROMPT_FILES)[number];

/** What stands for something in the texts of reminders, and in those alone: `{{usage}}`. */
export const PROMPT_VARIABLES = ["usage", "max", "blocks", "candidates"] as const;

/** A longer text is no prompt. */
export const MAX_PROMPT_BYTES = 16 * 1024;

const reminders: ReadonlySet<PromptFile> = new Set<PromptFile>([
  "limit-strong.md",
  "limit-soft.md",
  "turn.md",
  "iteration.md",
]);

export interface PromptMistake {
  /** From 1. */
  readonly line: number;
  /** `{{name}} is no variable; there are …`, without a full stop. */
  readonly why: string;
}

/** A text as its file has it, or what is wrong with it. This module is loaded in pi, and in the daemon. */
export function readPrompt(
  file: PromptFile,
  bytes: Uint8Array,
): { readonly text: string } | { readonly mistakes: readonly PromptMistake[] } {
  if (bytes.length > MAX_PROMPT_BYTES)
    return { mistakes: [{ line: 1, why: `the file is longer than ${MAX_PROMPT_BYTES} bytes` }] };
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return { mistakes: [{ line: 1, why: "the file is not UTF-8" }] };
  }
  if (text.trim() === "") return { mistakes: [{ line: 1, why: "the file is empty" }] };
  const mistakes = text.split("\n").flatMap((words, at) =>
    [...words.matchAll(/\{\{([^{}]{0,64})\}\}/g)].flatMap(([whole, name = ""]) => {
      const why = whyNoVariable(file, whole, name.trim());
      return why === undefined ? [] : [{ line: at + 1, why }];
    }),
  );
  return mistakes.length === 0 ? { text } : { mistakes: mistakes.slice(0, 16) };
}

function whyNoVariable(file: PromptFile, whole: string, name: string): string | undefined {
  const isKnown = (PROMPT_VARIABLES as readonly string[]).includes(name);
  if (isKnown && reminders.has(file)) return undefined;
  const known = PROMPT_VARIABLES.map((variable) => `{{${variable}}}`).join(", ");
  return isKnown
    ? `${whole} stands in reminders alone, and this text is the same in every request`
    : `${whole} is no variable; there are ${known}`;
}
