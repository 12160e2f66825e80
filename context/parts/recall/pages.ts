/** An exact piece of a text. All pages joined are the text. */
export interface Page {
  readonly text: string;
  /** Line numbers from 1. A line longer than {@link longestLine} counts as several. */
  readonly first: number;
  readonly last: number;
  readonly total: number;
}

/** UTF-16 units of a line. Each unit takes at most three bytes of UTF-8, so any line fits into a call. */
export const longestLine = 10_000;

/**
 * Returns lines from `offset` on: at most `limit` lines and `maxBytes` bytes of UTF-8, but at least one line.
 * `undefined`: the text has fewer lines. An empty text has one line.
 */
export function pageOf(text: string, offset: number, limit: number, maxBytes: number): Page | undefined {
  let line = 0;
  let at = 0;
  let start = -1;
  let end = 0;
  let bytes = 0;
  let last = 0;
  do {
    const next = endOfLine(text, at);
    line += 1;
    if (line >= offset && last < line && (start < 0 || last === line - 1)) {
      const size = Buffer.byteLength(text.slice(at, next));
      if (start < 0 || (line - offset < limit && bytes + size <= maxBytes)) {
        if (start < 0) start = at;
        bytes += size;
        end = next;
        last = line;
      }
    }
    at = next;
  } while (at < text.length);
  return start < 0 ? undefined : { text: text.slice(start, end), first: offset, last, total: line };
}

/** Counts the lines of a text. */
export function countLines(text: string): number {
  let lines = 0;
  let at = 0;
  do {
    at = endOfLine(text, at);
    lines += 1;
  } while (at < text.length);
  return lines;
}

/** Returns the position after the line's break, or where a long line is split. */
function endOfLine(text: string, at: number): number {
  const lineBreak = text.indexOf("\n", at);
  const end = lineBreak < 0 ? text.length : lineBreak + 1;
  if (end - at <= longestLine) return end;
  const broken = at + longestLine;
  return isHighSurrogate(text.charCodeAt(broken - 1)) ? broken - 1 : broken;
}

function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code <= 0xdbff;
}
