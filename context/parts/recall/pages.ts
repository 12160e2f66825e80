/** A piece of a text, exactly as it stands there. Pages that follow each other are the whole text. */
export interface Page {
  readonly text: string;
  /** Lines, from 1. A line of more than {@link longestLine} characters counts as several. */
  readonly first: number;
  readonly last: number;
  readonly total: number;
}

/** UTF-16 units of a line: a call has room for any line, since a unit is at most three bytes of UTF-8. */
export const longestLine = 10_000;

/**
 * The lines from `offset` on, at most `limit` of them and of `maxBytes` in UTF-8, but one at least. `undefined`: the text
 * has not so many lines. A text without any character has one.
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

/** How many lines a text has. */
export function countLines(text: string): number {
  let lines = 0;
  let at = 0;
  do {
    at = endOfLine(text, at);
    lines += 1;
  } while (at < text.length);
  return lines;
}

/** Behind the line break that ends the line, or where a line that is too long is broken. */
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
