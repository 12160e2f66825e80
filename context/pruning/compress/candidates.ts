import { mostCandidates } from "./messages.ts";
import { bordersOf, obstacleOf, tailOf, tokensIn } from "./span.ts";
import type { Place, Span, View } from "./view.ts";

/** A range that could be compressed. */
export interface Candidate {
  readonly startId: string;
  readonly endId: string;
  /** Estimated tokens of the uncompressed part. */
  readonly tokens: number;
}

/**
 * Returns up to five compressible ranges in transcript order: a user's message with everything up to the next one, or
 * several of these if one is small. If there are more than five, returns the largest.
 */
export function candidatesIn(view: View, { minTokens, turns }: { minTokens: number; turns: number }): Candidate[] {
  const end = tailOf(view, turns);
  const found: Candidate[] = [];
  let from = 0;
  const close = (to: number, isForced: boolean): void => {
    const candidate = candidateOf(view, { from, to: to - 1 });
    const isLarge = candidate !== undefined && candidate.tokens >= Math.max(1, minTokens);
    if (isLarge) found.push(candidate);
    if (isLarge || isForced) from = to;
  };
  for (let at = 0; at < end; at += 1) {
    const place = view.places[at] as Place;
    if (isClosed(view, place)) {
      close(at, true);
      from = place.to + 1;
    } else if (place.role === "user" && place.from === at) close(at, false);
  }
  close(end, true);
  return found
    .toSorted((a, b) => b.tokens - a.tokens)
    .slice(0, mostCandidates)
    .toSorted((a, b) => found.indexOf(a) - found.indexOf(b));
}

/** Whether no range with this place can be compressed now. */
function isClosed(view: View, place: Place): boolean {
  if (place.isPending || obstacleOf(place) !== undefined) return true;
  return view.own !== undefined && view.own >= place.from && view.own <= place.to;
}

function candidateOf(view: View, span: Span): Candidate | undefined {
  if (span.to < span.from) return undefined;
  const borders = bordersOf(view, span);
  if (borders === undefined) return undefined;
  const compressed = view.places
    .slice(span.from, span.to + 1)
    .reduce((sum, { block, tokens }) => (block === undefined ? sum : sum + tokens), 0);
  return { startId: borders.first, endId: borders.last, tokens: tokensIn(view, span) - compressed };
}
