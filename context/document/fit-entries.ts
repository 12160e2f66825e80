import type { BuiltMessage } from "../../protocol/link-context.ts";
import { capContent, textLength } from "./cap.ts";
import type { ContextItem } from "./document.ts";
import { minResultChars } from "./options.ts";

/** An item or message of a list to fit into a budget. */
export interface Entry {
  readonly kind: ContextItem["role"];
  readonly value: ContextItem | BuiltMessage;
}

export interface Counted<T> {
  readonly kind: Entry["kind"];
  readonly value: T;
  readonly tokens: number;
}

/** Sums the tokens of a range of entries. */
export function total(entries: readonly Counted<unknown>[], begin = 0, end: number = entries.length): number {
  let tokens = 0;
  for (let index = begin; index < end; index += 1) tokens += entries[index]?.tokens ?? 0;
  return tokens;
}

/** Maximum attempts to find the length of the one result that is not cut to the minimum. */
const maxTries = 10;

/** Shortens tool results, oldest first, until `excess` tokens are saved; returns `undefined` if that is impossible. */
export function capResults<T extends Entry["value"]>(
  entries: readonly Counted<T>[],
  excess: number,
  tokensOf: (value: T) => number,
): readonly Counted<T>[] | undefined {
  let missing = excess;
  const capped = entries.map((entry): Counted<T> => {
    if (missing <= 0 || entry.kind !== "toolResult") return entry;
    const cut = (max: number): Counted<T> => {
      const value = capValue(entry.value, max);
      return { ...entry, value, tokens: tokensOf(value) };
    };
    let best = cut(minResultChars);
    if (best.tokens >= entry.tokens) return entry;
    if (entry.tokens - best.tokens > missing) best = longestThatSaves(entry, missing, best, cut);
    missing -= entry.tokens - best.tokens;
    return best;
  });
  return missing <= 0 ? capped : undefined;
}

function longestThatSaves<T extends Entry["value"]>(
  entry: Counted<T>,
  missing: number,
  shortest: Counted<T>,
  cut: (max: number) => Counted<T>,
): Counted<T> {
  let best = shortest;
  let low = minResultChars;
  let high = contentLength(entry.value);
  for (let tries = 0; tries < maxTries && high - low > 1; tries += 1) {
    const middle = Math.floor((low + high) / 2);
    const candidate = cut(middle);
    if (entry.tokens - candidate.tokens >= missing) {
      best = candidate;
      low = middle;
    } else high = middle;
  }
  return best;
}

function contentLength(value: Entry["value"]): number {
  return value.role === "toolResult" ? textLength(value.content) : 0;
}

function capValue<T extends Entry["value"]>(value: T, max: number): T {
  if (value.role !== "toolResult") return value;
  // The kinds of parts are unchanged.
  return { ...value, content: capContent(value.content as ContextItem["content"], max) };
}
