import { statSync } from "node:fs";
import { join } from "node:path";
import { checkPrompt, maxPromptBytes, type PromptName, promptFiles } from "../../protocol/pruning/prompts.ts";
import { readBounded } from "../lib/bounded-file.ts";

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
  return promptsIn(directory).flatMap(({ name, path }) => unusablePrompt(name, path));
}

/** Where the texts of a directory are, whether they are there or not. */
export function promptsIn(directory: string): readonly { readonly name: PromptName; readonly path: string }[] {
  return (Object.keys(promptFiles) as PromptName[]).map((name) => ({ name, path: join(directory, promptFiles[name]) }));
}

function unusablePrompt(name: PromptName, file: string): string[] {
  const shown = JSON.stringify(file);
  try {
    const bytes = readBounded(file, maxPromptBytes);
    if (bytes === "absent") return [];
    if (bytes === "no file") return [`${shown} is not a file`];
    if (bytes === "too long") return [`${shown} is longer than ${maxPromptBytes} bytes`];
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    return checkPrompt(name, text).map(({ line, message }) => `${shown}, line ${line}: ${message.replace(/\.$/, "")}`);
  } catch (cause) {
    return [`${shown} ${cause instanceof TypeError ? "is not UTF-8" : whyUnreadable(cause)}`];
  }
}

function whyUnreadable(cause: unknown): string {
  const { code } = cause as NodeJS.ErrnoException;
  return code === "ENOENT" ? "does not exist" : `cannot be read (${code})`;
}
