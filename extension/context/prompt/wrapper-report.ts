/** What the prompt's wrappers take, and what stands in them. Tokens. */
export interface WrapperReport {
  /** By the wrapper's name. `none`: what stands in no wrapper. */
  readonly wrappers: ReadonlyMap<
    string,
    { readonly count: number; readonly wrapper: number; readonly content: number }
  >;
  /** The estimate of the whole prompt, which is the sum of all these. */
  readonly total: number;
}

const unwrapped = "none";
/** A tag that a line consists of, with or without what it wraps. */
const tags = /^[ \t]*<(\/?)([A-Za-z][A-Za-z0-9_-]*)((?:\s[^<>]*)?)>|<(\/)([A-Za-z][A-Za-z0-9_-]*)>[ \t]*$/gm;
const closingTags = /<\/([A-Za-z][A-Za-z0-9_-]*)>/g;
/** Wrappers that are told apart. */
const maxNames = 32;
/** Tags that are looked at. What stands behind them is content. */
const maxTags = 4_096;

interface Piece {
  readonly of: string;
  readonly kind: "wrapper" | "content";
  readonly tokens: number;
}

/**
 * Counts each piece of the prompt alone. An estimator counts a text as less than the sum of its parts, so each gets its
 * share of the estimate of the whole.
 */
export function wrapperReport(prompt: string, estimate: (text: string) => number): WrapperReport {
  const wrappers = new Map<string, { count: number; wrapper: number; content: number }>();
  const open: string[] = [];
  const pieces: Piece[] = [];
  const lastClosing = new Map(Array.from(prompt.matchAll(closingTags), ({ 1: name, index }) => [name, index]));
  let at = 0;
  const piece = (end: number, kind: Piece["kind"], name: string): void => {
    if (end > at) pieces.push({ of: name, kind, tokens: estimate(prompt.slice(at, end)) });
    at = end;
  };
  const of = (name: string) => {
    const known = wrappers.get(name) ?? (wrappers.size < maxNames ? { count: 0, wrapper: 0, content: 0 } : undefined);
    const found = known ?? wrappers.get(unwrapped) ?? { count: 0, wrapper: 0, content: 0 };
    wrappers.set(known === undefined ? unwrapped : name, found);
    return found;
  };
  of(unwrapped);
  let tagCount = 0;
  for (const found of prompt.matchAll(tags)) {
    tagCount += 1;
    if (tagCount > maxTags) break;
    const name = found[2] ?? found[5] ?? unwrapped;
    const isClosing = found[1] === "/" || found[4] === "/";
    if (isClosing ? open.at(-1) !== name : (lastClosing.get(name) ?? -1) < found.index) continue;
    piece(found.index, "content", open.at(-1) ?? unwrapped);
    piece(found.index + found[0].length, "wrapper", name);
    if (isClosing) open.pop();
    else {
      open.push(name);
      of(name).count += 1;
    }
  }
  piece(prompt.length, "content", open.at(-1) ?? unwrapped);
  const total = prompt === "" ? 0 : estimate(prompt);
  const alone = pieces.reduce((sum, { tokens }) => sum + tokens, 0);
  let [passed, given] = [0, 0];
  for (const { of: name, kind, tokens } of pieces) {
    passed += tokens;
    const upTo = passed === alone ? total : Math.round((total * passed) / alone);
    of(name)[kind] += upTo - given;
    given = upTo;
  }
  return { wrappers, total };
}
