/** Tokens of the prompt's wrappers and of their content. */
export interface WrapperReport {
  /** By wrapper name. `none`: text outside all wrappers. */
  readonly wrappers: ReadonlyMap<
    string,
    { readonly count: number; readonly wrapper: number; readonly content: number }
  >;
  /** The estimate of the whole prompt; the sum of all others. */
  readonly total: number;
}

const unwrapped = "none";
/** A line that consists of a tag, with or without content. */
const tags = /^[ \t]*<(\/?)([A-Za-z][A-Za-z0-9_-]*)((?:\s[^<>]*)?)>|<(\/)([A-Za-z][A-Za-z0-9_-]*)>[ \t]*$/gm;
const closing = /<\/([A-Za-z][A-Za-z0-9_-]*)>/g;
/** Maximum number of distinct wrappers. */
const maxNames = 32;

/**
 * Scales the estimates of the pieces so that they sum up to the estimate of the whole, because an estimator counts
 * fewer tokens for a text than for its parts. Reads the prompt a fixed number of times.
 */
export function wrapperReport(prompt: string, estimate: (text: string) => number): WrapperReport {
  const wrappers = new Map<string, { count: number; wrapper: number; content: number }>();
  const open: string[] = [];
  const pieces: { readonly of: { wrapper: number; content: number }; readonly as: "wrapper" | "content"; n: number }[] =
    [];
  let at = 0;
  const take = (end: number, of: { wrapper: number; content: number }, as: "wrapper" | "content"): void => {
    if (end > at) pieces.push({ of, as, n: estimate(prompt.slice(at, end)) });
    at = end;
  };
  const of = (name: string) => {
    const known = wrappers.get(name) ?? (wrappers.size < maxNames ? { count: 0, wrapper: 0, content: 0 } : undefined);
    const found = known ?? wrappers.get(unwrapped) ?? { count: 0, wrapper: 0, content: 0 };
    wrappers.set(known === undefined ? unwrapped : name, found);
    return found;
  };
  of(unwrapped);
  const closings = new Map(Array.from(prompt.matchAll(closing), ({ index, 1: name }) => [name, index]));
  for (const found of prompt.matchAll(tags)) {
    const name = found[2] ?? found[5] ?? unwrapped;
    const isClosing = found[1] === "/" || found[4] === "/";
    if (isClosing ? open.at(-1) !== name : (closings.get(name) ?? -1) < found.index) continue;
    take(found.index, of(open.at(-1) ?? unwrapped), "content");
    const wrapper = of(name);
    take(found.index + found[0].length, wrapper, "wrapper");
    if (isClosing) open.pop();
    else {
      open.push(name);
      wrapper.count += 1;
    }
  }
  take(prompt.length, of(open.at(-1) ?? unwrapped), "content");
  const total = prompt === "" ? 0 : estimate(prompt);
  const sum = pieces.reduce((all, { n }) => all + n, 0);
  let [seen, given] = [0, 0];
  for (const { of: wrapper, as, n } of pieces) {
    seen += n;
    const upTo = sum === 0 ? total : Math.round((total * seen) / sum);
    wrapper[as] += upTo - given;
    given = upTo;
  }
  return { wrappers, total: given };
}
