/** A block of Markdown that shows a text as it is. Its fence is longer than each run of backticks in the text. */
export function fenced(text: string): string {
  const runs = text.match(/`{3,}/g) ?? [];
  const fence = "`".repeat(runs.reduce((longest, run) => Math.max(longest, run.length + 1), 3));
  return `${fence}\n${text}${text.endsWith("\n") ? "" : "\n"}${fence}`;
}

/** The text in one line, with an ellipsis if it is longer than `maxChars`. */
export function oneLine(text: string, maxChars: number): string {
  // A multiple of the limit is enough to find the words. The whole text may have megabytes.
  const line = text
    .slice(0, maxChars * 8)
    .replace(/[\s\p{Cc}]+/gu, " ")
    .trim();
  return line.length <= maxChars ? line : `${cut(line, maxChars - 1)}…`;
}

/** The first line that is not blank, in the same form as {@link oneLine}. */
export function firstLine(text: string, maxChars: number): string {
  const start = text.search(/\S/);
  if (start === -1) return "";
  const end = text.slice(start).search(/[\r\n]/);
  return oneLine(end === -1 ? text.slice(start) : text.slice(start, start + end), maxChars);
}

/** The last `maxChars` UTF-16 units, without half of a character at the beginning. */
export function tail(text: string, maxChars: number): string {
  if (text.length <= maxChars) return text;
  const end = text.slice(-maxChars);
  return /^[\uDC00-\uDFFF]/.test(end) ? end.slice(1) : end;
}

function cut(text: string, maxChars: number): string {
  const start = text.slice(0, maxChars);
  return /[\uD800-\uDBFF]$/.test(start) ? start.slice(0, -1) : start;
}
