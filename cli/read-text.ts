import { text as readAll } from "node:stream/consumers";
import { UsageError } from "./command.ts";

/** The words of a text as one, or all of stdin for `-`. */
export async function readText(words: readonly string[]): Promise<string> {
  const text = words.length === 1 && words[0] === "-" ? await readAll(process.stdin) : words.join(" ");
  if (text === "") throw new UsageError("The text is empty.");
  return text;
}
