/** One step of a compiled glob. */
type Step =
  /** One character of these; `undefined`: any but a slash. */
  | { readonly kind: "one"; readonly fits: (char: string) => boolean }
  /** The two steps behind it may be left out. */
  | { readonly kind: "maybe" }
  /** Any number of characters without a slash, or with them. */
  | { readonly kind: "many"; readonly crosses: boolean };

/** Says whether a text is one that a glob means. */
export type Matcher = (text: string) => boolean;

/** Alternatives that braces may come to; a glob of more stands for its own characters. */
const maxAlternatives = 64;
/** Characters of a text that are looked at: a longer one is matched by no glob. */
const maxText = 4_096;

/**
 * Compiles a glob: `*` and `?` stop at slashes, `**` does not and takes a whole path segment with the slash behind it, `[a-z]`
 * and `[!a-z]`, `{a,b}`. All else stands for itself, also what is not closed. It takes time in proportion to both lengths
 * multiplied, whatever the texts are.
 */
export function globOf(pattern: string): Matcher {
  const compiled = alternativesOf(pattern).map(stepsOf);
  return (text) => text.length <= maxText && compiled.some((steps) => isMatch(steps, [...text]));
}

/** `{a,b}c` as `ac` and `bc`. */
function alternativesOf(pattern: string): string[] {
  let open = [pattern];
  const done: string[] = [];
  while (open.length > 0) {
    const next: string[] = [];
    for (const one of open) {
      const parts = firstBraces(one);
      if (parts === undefined) done.push(one);
      else next.push(...parts.options.map((option) => `${parts.before}${option}${parts.behind}`));
    }
    if (done.length + next.length > maxAlternatives) return [pattern];
    open = next;
  }
  return done;
}

function firstBraces(pattern: string) {
  const start = pattern.indexOf("{");
  if (start === -1) return undefined;
  const options: string[] = [];
  let depth = 0;
  let from = start + 1;
  for (let at = start; at < pattern.length; at += 1) {
    const char = pattern[at];
    if (char === "{") depth += 1;
    if (char === "}") depth -= 1;
    if ((char === "," && depth === 1) || depth === 0) {
      options.push(pattern.slice(from, at));
      from = at + 1;
    }
    if (depth === 0) {
      // `{a}` is no choice.
      return options.length < 2
        ? undefined
        : { before: pattern.slice(0, start), options, behind: pattern.slice(at + 1) };
    }
  }
  return undefined;
}

function stepsOf(pattern: string): Step[] {
  const chars = [...pattern];
  const steps: Step[] = [];
  for (let at = 0; at < chars.length; at += 1) {
    const char = chars[at] as string;
    if (char === "*") {
      const isWhole = at === 0 || chars[at - 1] === "/";
      const crosses = chars[at + 1] === "*";
      while (chars[at + 1] === "*") at += 1;
      // `a/**/b` is `a/b` too.
      if (crosses && isWhole && chars[at + 1] === "/") steps.push({ kind: "maybe" });
      steps.push({ kind: "many", crosses });
    } else if (char === "?") steps.push({ kind: "one", fits: (one) => one !== "/" });
    else {
      const found = char === "[" ? classAt(chars, at) : undefined;
      steps.push({ kind: "one", fits: found?.fits ?? ((one) => one === char) });
      at = found?.end ?? at;
    }
  }
  return steps;
}

function classAt(chars: readonly string[], start: number) {
  const isNot = chars[start + 1] === "!" || chars[start + 1] === "^";
  const first = start + (isNot ? 2 : 1);
  // A bracket that comes first is one of the characters.
  const end = chars.indexOf("]", first + 1);
  if (end === -1) return undefined;
  const ranges: (readonly [from: string, to: string])[] = [];
  for (let at = first; at < end; at += 1) {
    const from = chars[at] as string;
    const isRange = chars[at + 1] === "-" && at + 2 < end;
    ranges.push([from, isRange ? (chars[at + 2] as string) : from]);
    if (isRange) at += 2;
  }
  const isIn = (one: string): boolean => ranges.some(([from, to]) => from <= one && one <= to);
  return { end, fits: (one: string): boolean => one !== "/" && isIn(one) !== isNot };
}

/** All places in the glob that the text so far can have led to, at once: nothing is tried twice. */
function isMatch(steps: readonly Step[], text: readonly string[]): boolean {
  let places = reached(steps, new Set([0]));
  for (const char of text) {
    const next = new Set<number>();
    for (const at of places) {
      const step = steps[at];
      if (step === undefined) continue;
      if (step.kind === "one" && step.fits(char)) next.add(at + 1);
      if (step.kind === "many" && (step.crosses || char !== "/")) next.add(at);
    }
    if (next.size === 0) return false;
    places = reached(steps, next);
  }
  return places.has(steps.length);
}

function reached(steps: readonly Step[], places: ReadonlySet<number>): ReadonlySet<number> {
  const all = new Set(places);
  for (const at of all) {
    const kind = steps[at]?.kind;
    if (kind === "many" || kind === "maybe") all.add(at + 1);
    if (kind === "maybe") all.add(at + 3);
  }
  return all;
}
