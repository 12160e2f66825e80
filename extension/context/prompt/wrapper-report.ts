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
/** Wrappers that are told apart. */
const maxNames = 32;

/**
 * Counts the prompt piece by piece, each as what the estimate grows by: so the pieces come to the estimate of the whole,
 * though an estimator counts a text as less than the sum of its parts.
 */
export function wrapperReport(prompt: string, estimate: (text: string) => number): WrapperReport {
  const wrappers = new Map<string, { count: number; wrapper: number; content: number }>();
  const open: string[] = [];
  let [at, counted] = [0, 0];
  const grow = (end: number): number => {
    if (end === at) return 0;
    const now = estimate(prompt.slice(0, end));
    const grown = now - counted;
    [at, counted] = [end, now];
    return grown;
  };
  const of = (name: string) => {
    const known = wrappers.get(name) ?? (wrappers.size < maxNames ? { count: 0, wrapper: 0, content: 0 } : undefined);
    const found = known ?? wrappers.get(unwrapped) ?? { count: 0, wrapper: 0, content: 0 };
    wrappers.set(known === undefined ? unwrapped : name, found);
    return found;
  };
  of(unwrapped);
  for (const found of prompt.matchAll(tags)) {
    const name = found[2] ?? found[5] ?? unwrapped;
    const isClosing = found[1] === "/" || found[4] === "/";
    if (isClosing ? open.at(-1) !== name : !prompt.includes(`</${name}>`, found.index)) continue;
    of(open.at(-1) ?? unwrapped).content += grow(found.index);
    const wrapper = of(name);
    wrapper.wrapper += grow(found.index + found[0].length);
    if (isClosing) open.pop();
    else {
      open.push(name);
      wrapper.count += 1;
    }
  }
  of(open.at(-1) ?? unwrapped).content += grow(prompt.length);
  return { wrappers, total: counted };
}
