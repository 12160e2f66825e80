/** The texts for the model that a directory can replace, by file name. */
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

/** Variables of a reminder's text. */
export const promptVariables = ["usage", "max", "blocks", "candidates"] as const;
export type PromptVariable = (typeof promptVariables)[number];

/** Maximum bytes of one text. */
export const maxPromptBytes = 32 * 1024;

const reminders: ReadonlySet<PromptName> = new Set(["limitStrong", "limitSoft", "turn", "iteration"]);
const variablePattern = /\{\{([^{}\n]{0,64})\}\}/g;

export interface PromptFinding {
  /** Counted from 1. */
  readonly line: number;
  readonly message: string;
}

/** The mistakes of a text, first one first. The caller must limit its size. */
export function checkPrompt(name: PromptName, text: string): readonly PromptFinding[] {
  if (text.trim() === "") return [{ line: 1, message: "The text is empty." }];
  return text.split("\n").flatMap((line, at) =>
    [...line.matchAll(variablePattern)].flatMap(([whole, variable = ""]) => {
      const isKnown = (promptVariables as readonly string[]).includes(variable);
      if (isKnown && reminders.has(name)) return [];
      const message = isKnown
        ? `${whole} is allowed only in reminders.`
        : `${whole} is not a variable; the variables are ${promptVariables.map((known) => `{{${known}}}`).join(", ")}.`;
      return [{ line: at + 1, message }];
    }),
  );
}

/** A reminder's text with its variables replaced. Values are never searched for variables. */
export function filledPrompt(text: string, values: Readonly<Record<PromptVariable, string>>): string {
  return text.replaceAll(variablePattern, (whole, name: string) =>
    Object.hasOwn(values, name) ? values[name as PromptVariable] : whole,
  );
}
