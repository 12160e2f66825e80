import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { MAX_PROMPT_BYTES, PROMPT_FILES, readPrompt } from "../../protocol/pruning/prompts.ts";

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
  return PROMPT_FILES.flatMap((name) => {
    const file = join(directory, name);
    const shown = JSON.stringify(file);
    try {
      const found = statSync(file, { throwIfNoEntry: false });
      if (found === undefined) return [];
      if (!found.isFile()) return [`${shown} is not a file`];
      if (found.size > MAX_PROMPT_BYTES) return [`${shown} is longer than ${MAX_PROMPT_BYTES} bytes`];
      const read = readPrompt(name, readFileSync(file));
      return "text" in read ? [] : read.mistakes.map(({ line, why }) => `${shown}, line ${line}: ${why}`);
    } catch (cause) {
      return [`${shown} ${whyUnreadable(cause)}`];
    }
  });
}

function whyUnreadable(cause: unknown): string {
  const { code } = cause as NodeJS.ErrnoException;
  return code === "ENOENT" ? "does not exist" : `cannot be read (${code})`;
}
