/** The texts for the model that a directory can hold, by the names of their files. */
export const promptFiles = {
  system: "system.md",
  manual: "manual.md",
  compress: "compress.md",
  limitStrong: "limit-strong.md",
  limitSoft: "limit-soft.md",
  turn: "turn.md",
  iteration: "iteration.md",
} as const;
export type PromptName = keyof typeof promptFiles;

/** What a reminder's text can name. */
export const promptVariables = ["usage", "max", "blocks", "candidates"] as const;
export type PromptVariable = (typeof promptVariables)[number];

/** Bytes of one text. */
export const maxPromptBytes = 32 * 1024;

const reminders: ReadonlySet<PromptName> = new Set(["limitStrong", "limitSoft", "turn", "iteration"]);
const variablePattern = /\{\{([^{}\n]{0,64})\}\}/g;

export interface PromptFinding {
  /** From 1. */
  readonly line: number;
  readonly message: string;
}

/** What is wrong with a text, the first finding first. Its bytes are the caller's to bound. */
export function checkPrompt(name: PromptName, text: string): readonly PromptFinding[] {
  if (text.trim() === "") return [{ line: 1, message: "It is empty." }];
  return text.split("\n").flatMap((line, at) =>
    [...line.matchAll(variablePattern)].flatMap(([whole, variable = ""]) => {
      const isKnown = (promptVariables as readonly string[]).includes(variable);
      if (isKnown && reminders.has(name)) return [];
      const message = isKnown
        ? `${whole} is for reminders alone.`
        : `${whole} is no variable; there are ${promptVariables.map((known) => `{{${known}}}`).join(", ")}.`;
      return [{ line: at + 1, message }];
    }),
  );
}

/** A reminder's text with these values in the place of its variables. Values are never searched for variables. */
export function filledPrompt(text: string, values: Readonly<Record<PromptVariable, string>>): string {
  return text.replaceAll(variablePattern, (whole, name: string) =>
    Object.hasOwn(values, name) ? values[name as PromptVariable] : whole,
  );
}
