import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { checkPrompt, maxPromptBytes, type PromptName, promptFiles } from "../../protocol/pruning/prompts.ts";

/**
 * What keeps a directory from being one of texts for the model: its texts are those of known names, and others are not looked
 * at. Empty: nothing does.
 */
export function unusablePrompts(directory: string): string[] {
  try {
    if (!statSync(directory).isDirectory()) return [`${JSON.stringify(directory)} is not a directory`];
  } catch (cause) {
    return [`${JSON.stringify(directory)} ${whyUnreadable(cause)}`];
  }
  return (Object.keys(promptFiles) as PromptName[]).flatMap((name) =>
    unusablePrompt(name, join(directory, promptFiles[name])),
  );
}

function unusablePrompt(name: PromptName, file: string): string[] {
  const shown = JSON.stringify(file);
  try {
    const found = statSync(file, { throwIfNoEntry: false });
    if (found === undefined) return [];
    if (!found.isFile()) return [`${shown} is not a file`];
    if (found.size > maxPromptBytes) return [`${shown} is longer than ${maxPromptBytes} bytes`];
    const text = new TextDecoder("utf-8", { fatal: true }).decode(readFileSync(file));
    return checkPrompt(name, text).map(({ line, message }) => `${shown}, line ${line}: ${message.replace(/\.$/, "")}`);
  } catch (cause) {
    return [`${shown} ${cause instanceof TypeError ? "is not UTF-8" : whyUnreadable(cause)}`];
  }
}

function whyUnreadable(cause: unknown): string {
  const { code } = cause as NodeJS.ErrnoException;
  return code === "ENOENT" ? "does not exist" : `cannot be read (${code})`;
}
