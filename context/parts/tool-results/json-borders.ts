/** Lengths to keep of a text. UTF-16 units. */
export interface Kept {
  readonly head: number;
  readonly tail: number;
}

/** The borders of a cut in JSON, between elements of the same depth. */
export interface JsonCut {
  /** After the comma of the last element of the head. */
  readonly headEnd: number;
  /** After the comma before the first element of the tail. */
  readonly tailStart: number;
  readonly leftOut: number;
  /** The depth of the elements. */
  readonly elements: number;
}

/** Larger texts are cut as text, because parsing would cost too much. */
const maxChars = 512 * 1_024;
const maxDepth = 4;

/** `undefined`: not valid JSON, or no borders near the places of the cut. */
export function borders(text: string, kept: Kept): JsonCut | undefined {
  const first = /^\s*([[{])/u.exec(text.slice(0, 64))?.[1];
  if (first === undefined || text.length > maxChars || !isJson(text)) return undefined;
  for (const depth of elementsByDepth(text)) {
    const cut = at(depth, text.length, kept);
    if (cut !== undefined) return cut;
  }
  return undefined;
}

/** Elements of all lists and objects at one depth. */
interface Depth {
  /** Positions of the commas between elements. */
  readonly commas: number[];
  /** Position of the comma or bracket before each element. */
  readonly starts: number[];
}

/** At least half of the kept length must be used; otherwise the cut goes deeper. */
function at({ commas, starts }: Depth, length: number, { head, tail }: Kept): JsonCut | undefined {
  const headEnd = head === 0 ? 0 : (commas.findLast((comma) => comma < head) ?? -1) + 1;
  const tailStart = tail === 0 ? length : (commas.find((comma) => comma + 1 >= length - tail) ?? length) + 1;
  if (headEnd < head / 2 || length - tailStart < tail / 2 || headEnd >= tailStart) return undefined;
  const leftOut = starts.filter((start) => start + 1 >= headEnd && start + 1 < tailStart).length;
  return { headEnd, tailStart, leftOut, elements: starts.length };
}

/** Outermost depth first. The text must be valid JSON. */
function elementsByDepth(text: string): Depth[] {
  const found = Array.from({ length: maxDepth }, (): Depth => ({ commas: [], starts: [] }));
  let depth = 0;
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    if (code === 0x22) index = endOfString(text, index);
    else if (code === 0x5b || code === 0x7b) {
      depth += 1;
      if (depth <= maxDepth && !isEmptyAt(text, index + 1)) found[depth - 1]?.starts.push(index);
    } else if (code === 0x5d || code === 0x7d) depth -= 1;
    else if (code === 0x2c) {
      found[depth - 1]?.commas.push(index);
      found[depth - 1]?.starts.push(index);
    }
  }
  return found;
}

/** Whether an empty list or object begins here. */
function isEmptyAt(text: string, from: number): boolean {
  let index = from;
  while (index < from + 64 && isSpace(text.charCodeAt(index))) index += 1;
  const code = text.charCodeAt(index);
  return code === 0x5d || code === 0x7d;
}

function isSpace(code: number): boolean {
  return code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09;
}

function endOfString(text: string, start: number): number {
  let index = start + 1;
  while (index < text.length && text.charCodeAt(index) !== 0x22) index += text.charCodeAt(index) === 0x5c ? 2 : 1;
  return index;
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
