/** Unchanged lines before and after a change. */
const contextLines = 3;

/**
 * The change of a whole file as a patch in Git's format, with absolute paths and without prefixes. `oldText`: null for a
 * new file. Undefined: nothing has changed.
 */
export function filePatch(path: string, oldText: string | null, newText: string): string | undefined {
  if (oldText === newText) return undefined;
  return patchOf(path, oldText === null, hunkOf(linesOf(oldText ?? ""), linesOf(newText)));
}

/** The hunks of a unified diff as a patch of this file. Undefined: it has none. What follows them is left out. */
export function patchFrom(unified: string, path: string): string | undefined {
  const lines = unified.split("\n");
  const first = lines.findIndex((line) => line.startsWith("@@ "));
  if (first === -1) return undefined;
  const end = lines.findIndex((line, index) => index > first && !/^(?:@@ |[ +\-\\])/.test(line));
  const hunks = lines.slice(first, end === -1 ? undefined : end);
  return patchOf(path, false, `${hunks.join("\n")}\n`);
}

function patchOf(path: string, isNew: boolean, hunks: string): string {
  const name = quoted(path);
  // As Git, which ends a name with spaces so that it is not taken for a time.
  const end = path.includes(" ") ? "\t" : "";
  const mode = isNew ? "new file mode 100644\n" : "";
  const names = hunks === "" ? "" : `--- ${isNew ? "/dev/null" : name + end}\n+++ ${name}${end}\n`;
  return `diff --git ${name} ${name}\n${mode}${names}${hunks}`;
}

/** One hunk, from the first line that differs to the last one. */
function hunkOf(oldLines: readonly string[], newLines: readonly string[]): string {
  const shorter = Math.min(oldLines.length, newLines.length);
  let start = 0;
  while (start < shorter && oldLines[start] === newLines[start]) start++;
  let same = 0;
  while (same < shorter - start && oldLines.at(-1 - same) === newLines.at(-1 - same)) same++;
  const from = Math.max(0, start - contextLines);
  const after = Math.min(same, contextLines);
  const [oldEnd, newEnd] = [oldLines.length - same, newLines.length - same];
  const rows = [
    ...oldLines.slice(from, start).map((line) => ` ${line}`),
    ...oldLines.slice(start, oldEnd).map((line) => `-${line}`),
    ...newLines.slice(start, newEnd).map((line) => `+${line}`),
    ...oldLines.slice(oldEnd, oldEnd + after).map((line) => ` ${line}`),
  ];
  if (rows.length === 0) return "";
  const range = (end: number): string => {
    const count = end + after - from;
    return `${count === 0 ? from : from + 1},${count}`;
  };
  return `@@ -${range(oldEnd)} +${range(newEnd)} @@\n${rows.join("")}`;
}

/** The lines with their ends. One without an end is followed by Git's words for it. */
function linesOf(text: string): readonly string[] {
  const lines = text.match(/[^\n]*\n|[^\n]+$/g) ?? [];
  const last = lines.at(-1);
  return last === undefined || last.endsWith("\n")
    ? lines
    : [...lines.slice(0, -1), `${last}\n\\ No newline at end of file\n`];
}

const escapes: Readonly<Record<string, string>> = {
  "\x07": "\\a",
  "\b": "\\b",
  "\t": "\\t",
  "\n": "\\n",
  "\v": "\\v",
  "\f": "\\f",
  "\r": "\\r",
  '"': '\\"',
  "\\": "\\\\",
};

/** A path as Git quotes it: one with unusual characters as a string of C, with its bytes in octal. */
function quoted(path: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters that Git quotes.
  const unusual = /[\x00-\x1f\x7f"\\]|[^\x00-\x7f]+/g;
  const name = path.replace(unusual, (found) => escapes[found] ?? octal(found));
  return name === path ? path : `"${name}"`;
}

function octal(text: string): string {
  return Array.from(Buffer.from(text), (byte) => `\\${byte.toString(8).padStart(3, "0")}`).join("");
}
