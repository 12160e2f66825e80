import { isRecord, oneLine, type PiValue, textOf } from "./pi-values.ts";

const maxChars = 500;

/** What a tool works on, in one line: foreign text. */
export function whatOf(name: string, args: unknown): string {
  const given = isRecord(args) ? args : {};
  return oneLine(wordsOf(name, given), maxChars);
}

function wordsOf(name: string, args: PiValue): string {
  const { path, pattern, command } = args;
  if (name === "bash" || name === "powershell") return textOf(command);
  if (name === "grep" || name === "find") {
    const where = textOf(path);
    return where === "" ? textOf(pattern) : `${textOf(pattern)} in ${where}`;
  }
  if (textOf(path) !== "") return textOf(path);
  return textOf(Object.values(args).find((value) => textOf(value) !== ""));
}

/** Whether a tool of pi changes files. */
export function isChange(name: string): boolean {
  return name === "edit" || name === "write";
}

/** How many lines a diff of pi adds and removes. Its lines begin with a sign. */
export function countLines(diff: string): { readonly added: number; readonly removed: number } {
  let [added, removed] = [0, 0];
  for (const line of diff.split("\n")) {
    if (line.startsWith("+")) added += 1;
    else if (line.startsWith("-")) removed += 1;
  }
  return { added, removed };
}
