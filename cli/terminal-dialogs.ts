import type { Dialog, DialogAnswer } from "../protocol/dialog.ts";
import { oneLine, printable } from "./text.ts";

/** A dialog as a terminal shows it, line by line. */
export function questionLines({ method, title, message, options = [], placeholder }: Dialog): readonly string[] {
  const lines = [`? ${oneLine(title)}`];
  if (message !== undefined) lines.push(...printable(message).split("\n"));
  if (method === "select") lines.push(...options.map((option, index) => `  ${index + 1}) ${oneLine(option)}`));
  if (placeholder !== undefined && placeholder !== "") lines.push(`  (${oneLine(placeholder)})`);
  return lines;
}

/** The label of the line for the answer. */
export function answerLabel({ method, options = [] }: Dialog): string {
  switch (method) {
    case "select":
      return options.length > 1 ? `1-${options.length}? ` : "1? ";
    case "confirm":
      return "y/n? ";
    default:
      return "answer: ";
  }
}

/** Parses a typed line as an answer, or returns what is wrong with it. */
export function answerOf(
  { method, options = [] }: Dialog,
  line: string,
): { readonly answer: DialogAnswer } | { readonly problem: string } {
  const word = line.trim();
  switch (method) {
    case "select": {
      const value = optionOf(options, word);
      if (value !== undefined) return { answer: { value } };
      return {
        problem: `Type a number from 1 to ${options.length}, or the text of an option. Ctrl-D dismisses the dialog.`,
      };
    }
    case "confirm":
      if (/^(?:y|yes)$/i.test(word)) return { answer: { confirmed: true } };
      if (/^(?:n|no)$/i.test(word)) return { answer: { confirmed: false } };
      return { problem: "Type y or n. Ctrl-D dismisses the dialog." };
    default:
      return { answer: { value: line } };
  }
}

/** The text of an option has priority over its number, because options may be numbers. */
function optionOf(options: readonly string[], word: string): string | undefined {
  const named = options.find((option) => option === word || oneLine(option) === word);
  return named ?? (/^\d{1,6}$/.test(word) ? options[Number(word) - 1] : undefined);
}
