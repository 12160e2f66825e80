/** One step of a compiled glob. */
type Step =
  /** One matching character. */
  | { readonly kind: "one"; readonly fits: (char: string) => boolean }
  /** The next two steps are optional. */
  | { readonly kind: "maybe" }
  /** Any number of characters without a slash, or with them. */
  | { readonly kind: "many"; readonly crosses: boolean };

/** Tests whether a text matches a glob. */
export type Matcher = (text: string) => boolean;

/** Alternatives from braces; a glob with more is matched literally. */
const maxAlternatives = 64;
/** Characters of a text; a longer text matches no glob. */
const maxText = 4_096;

/**
 * Compiles a glob: `*` and `?` do not match slashes, `**` does, and `**` with a slash after it matches any number of path
 * segments; `[a-z]`, `[!a-z]` and `{a,b}` work as usual. All other characters, and unclosed brackets, match literally.
 * Matching takes at most the product of both lengths.
 */
export function globOf(pattern: string): Matcher {
  const compiled = alternativesOf(pattern).map(stepsOf);
  return (text) => {
    if (text.length > maxText) return false;
    const chars = [...text];
    return compiled.some((steps) => endsRight(steps, chars) && isMatch(steps, chars));
  };
}

/**
 * Compiles a pattern in which `*` matches any text, and all other characters match literally. Matching takes at most the
 * product of both lengths.
 */
export function wildcardOf(pattern: string): Matcher {
  if (!pattern.includes("*")) return (text) => text === pattern;
  const steps = [...pattern].map((char): Step => {
    if (char === "*") return { kind: "many", crosses: true };
    return { kind: "one", fits: (one) => one === char };
  });
  return (text) => {
    const chars = [...text];
    return endsRight(steps, chars) && isMatch(steps, chars);
  };
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
      else next.push(...parts.options.map((option) => `${parts.before}${option}${parts.after}`));
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
      // `{a}` has no alternatives.
      return options.length < 2
        ? undefined
        : { before: pattern.slice(0, start), options, after: pattern.slice(at + 1) };
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
      // `a/**/b` also matches `a/b`.
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
  // A leading bracket is a literal character.
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

/** Compares the literal end of the glob first, because most texts differ there. */
function endsRight(steps: readonly Step[], text: readonly string[]): boolean {
  for (let back = 1; back <= steps.length; back += 1) {
    const step = steps.at(-back);
    // The slash of `**/` is optional.
    if (step?.kind !== "one" || steps[steps.length - back - 2]?.kind === "maybe") return true;
    const char = text.at(-back);
    if (char === undefined || !step.fits(char)) return false;
  }
  return steps.length === text.length;
}

/** Simulates all possible positions in the glob at once, so that there is no backtracking. */
function isMatch(steps: readonly Step[], text: readonly string[]): boolean {
  let places = new Uint8Array(steps.length + 1);
  let next = new Uint8Array(steps.length + 1);
  places[0] = 1;
  reach(steps, places);
  for (const char of text) {
    next.fill(0);
    let isAny = false;
    for (let at = 0; at < steps.length; at += 1) {
      const step = steps[at];
      if (places[at] !== 1 || step === undefined) continue;
      const to = step.kind === "one" ? step.fits(char) && at + 1 : isMany(step, char) && at;
      if (to === false) continue;
      next[to] = 1;
      isAny = true;
    }
    if (!isAny) return false;
    [places, next] = [next, places];
    reach(steps, places);
  }
  return places[steps.length] === 1;
}

function isMany(step: Step, char: string): boolean {
  return step.kind === "many" && (step.crosses || char !== "/");
}

/** Marks the positions reachable without consuming a character; they all lie after the marked ones. */
function reach(steps: readonly Step[], places: Uint8Array): void {
  for (let at = 0; at < steps.length; at += 1) {
    const kind = steps[at]?.kind;
    if (places[at] !== 1 || kind === "one") continue;
    places[at + 1] = 1;
    if (kind === "maybe") places[at + 3] = 1;
  }
}
