import { closeSync, constants, fstatSync, openSync, readSync, statSync } from "node:fs";
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
  const found = fileTextOf(file, maxPromptBytes);
  if (found === undefined) return [];
  if ("wrong" in found) return [`${shown} ${found.wrong}`];
  return checkPrompt(name, found.text).map(
    ({ line, message }) => `${shown}, line ${line}: ${message.replace(/\.$/, "")}`,
  );
}

/**
 * The text of a file, or what is wrong with it. `undefined`: there is none. What it is, is asked of the opened file, and no
 * more of it is read than it may have: the agent can write into the directory meanwhile.
 */
export function fileTextOf(
  path: string,
  maxBytes: number,
): { readonly text: string } | { readonly wrong: string } | undefined {
  let file: number | undefined;
  try {
    file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    if (!fstatSync(file).isFile()) return { wrong: "is not a file" };
    const bytes = Buffer.alloc(maxBytes + 1);
    const length = readSync(file, bytes, 0, bytes.length, 0);
    if (length > maxBytes) return { wrong: `is longer than ${maxBytes} bytes` };
    return { text: new TextDecoder("utf-8", { fatal: true }).decode(bytes.subarray(0, length)) };
  } catch (cause) {
    if (cause instanceof TypeError) return { wrong: "is not UTF-8" };
    return (cause as NodeJS.ErrnoException).code === "ENOENT" ? undefined : { wrong: whyUnreadable(cause) };
  } finally {
    if (file !== undefined) closeSync(file);
  }
}

function whyUnreadable(cause: unknown): string {
  const { code } = cause as NodeJS.ErrnoException;
  return code === "ENOENT" ? "does not exist" : `cannot be read (${code})`;
}
