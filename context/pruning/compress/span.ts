import type { Place, Span, View } from "./view.ts";

export function placesIn({ places }: View, { from, to }: Span): readonly Place[] {
  return places.slice(from, to + 1);
}

/** The first and last id in a span. */
export function bordersOf(view: View, span: Span): { readonly first: string; readonly last: string } | undefined {
  const inside = placesIn(view, span);
  const first = inside.find(({ id }) => id !== undefined)?.id;
  const last = inside.findLast(({ id }) => id !== undefined)?.id;
  return first === undefined || last === undefined ? undefined : { first, last };
}

/** `m010–m031`, or `m010` alone. */
export function labelOf(view: View, span: Span): string {
  const borders = bordersOf(view, span);
  if (borders === undefined) return "The range";
  return borders.first === borders.last ? borders.first : `${borders.first}–${borders.last}`;
}

export function tokensIn(view: View, span: Span): number {
  return placesIn(view, span).reduce((sum, { tokens }) => sum + tokens, 0);
}

/**
 * The first place of the newest turns; `places.length` if there is none. A turn is an answer with its results and its
 * prompt.
 */
export function tailOf({ places }: View, turns: number): number {
  let left = turns;
  let at = places.length;
  while (at > 0 && left > 0) {
    const { role, from } = places[at - 1] as Place;
    // A block contains finished turns only.
    if (role === "block" || isSummary(role)) break;
    at = from;
    if (role === "assistant" || places[from]?.role === "assistant") left -= 1;
  }
  while (left === 0 && at > 0 && isAsked(places[at - 1] as Place)) at -= 1;
  return at;
}

function isAsked({ role }: Place): boolean {
  return role === "user" || role === "custom" || role === "bashExecution";
}

function isSummary(role: Place["role"]): boolean {
  return role === "compactionSummary" || role === "branchSummary";
}

/** Why a place cannot be compressed. `undefined`: it can. */
export function obstacleOf({ role }: Place): string | undefined {
  if (role === "compactionSummary") return "compaction summary";
  return role === "branchSummary" ? "branch summary" : undefined;
}
