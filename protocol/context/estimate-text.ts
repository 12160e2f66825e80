// Services cut a text into tokens by tables that are not here. What holds for all of them: a short word is one token, a
// long one several; digits go by few; a space before a word costs nothing; beyond ASCII a character may be several.

const upper = 0;
const lower = 1;
const digit = 2;
const space = 3;
const mark = 4;

/** Kinds of the ASCII characters. */
const kinds = Uint8Array.from({ length: 128 }, (_, code) => {
  if (code >= 0x41 && code <= 0x5a) return upper;
  if (code >= 0x61 && code <= 0x7a) return lower;
  if (code >= 0x30 && code <= 0x39) return digit;
  return code === 0x20 || (code >= 0x09 && code <= 0x0d) ? space : mark;
});

/** Tokens of the first character of a run of one kind, and of each further one. */
const firstOf = [1.2, 1, 1, 0, 0.8];
const furtherOf = [0.5, 0.1, 0.5, 0.1, 0.7];

/**
 * Tokens of a text, in one pass and without a copy of it. Never less than a quarter of its UTF-16 units, which is how pi
 * counts.
 */
export function estimateText(text: string): number {
  let tokens = 0;
  let previous = space;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code >= 128) {
      tokens += beyondAscii(code);
      previous = mark;
      continue;
    }
    const kind = kinds[code] as number;
    // A word may begin with a capital.
    const goesOn = kind === previous || (kind === lower && previous === upper);
    if (kind === space) tokens += goesOn ? 0.1 : code === 0x20 ? 0 : 0.9;
    else tokens += (goesOn ? furtherOf[kind] : firstOf[kind]) as number;
    previous = kind;
  }
  return Math.ceil(Math.max(tokens, text.length / 4));
}

/** Tokens of one UTF-16 unit. */
function beyondAscii(code: number): number {
  if (code < 0x370) return 0.7;
  if (code < 0x900) return 0.8;
  if (code < 0x2000) return 1.3;
  if (code < 0x2e80) return 1.5;
  if (code < 0xd800) return 1.3;
  return 1.6;
}

/** Tokens of a value as JSON, without writing it, and without recursion. */
export function estimateJson(value: unknown): number {
  let tokens = 0;
  const open: unknown[] = [value];
  while (open.length > 0) {
    const next = open.pop();
    if (typeof next === "string") tokens += estimateQuoted(next);
    else if (Array.isArray(next)) {
      tokens += 1 + next.length * 0.6;
      for (const element of next) open.push(element);
    } else if (typeof next === "object" && next !== null) {
      tokens += 1.5;
      for (const name in next) {
        tokens += estimateQuoted(name) + 0.6;
        open.push((next as Record<string, unknown>)[name]);
      }
    } else tokens += typeof next === "number" ? estimateText(String(next)) : 1;
  }
  return Math.ceil(tokens);
}

function estimateQuoted(text: string): number {
  return estimateText(text) + 1.2 + escapes(text) * 0.6;
}

/** How many characters JSON writes as more than one. */
function escapes(text: string): number {
  let count = 0;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === 0x22 || code === 0x5c || code === 0x0a || code === 0x09 || code === 0x0d) count += 1;
    else if (code < 0x20) count += 5;
  }
  return count;
}
