import { maxKept } from "../block-entries.ts";
import type { Segment } from "../record.ts";
import type { CompressCall, RangeCall } from "./call.ts";
import { type Candidate, candidatesIn } from "./candidates.ts";
import * as say from "./messages.ts";
import { placeholderProblems, segmentsOf, withRequired } from "./placeholders.ts";
import { labelOf, obstacleOf, placesIn, tailOf, tokensIn } from "./span.ts";
import type { Place, Span, View } from "./view.ts";
import { readId } from "./written-id.ts";

/** A verbatim text of a block. */
export interface Kept {
  readonly title: string;
  readonly text: string;
}

export interface ResolveRules {
  /** Whether wrong placeholders are refused or repaired. */
  readonly placeholders: "strict" | "lenient";
  /** Smaller ranges are refused. 0: no minimum. */
  readonly minRangeTokens: number;
  /** The share of a range that must be saved. */
  readonly minSavings: number;
  /** Protected newest turns below the limit; above it, one turn is protected. */
  readonly protectRecentTurns: number;
  /** Verbatim text of a block, in UTF-16 units. */
  readonly mostKept: number;
  readonly keptOf: (places: readonly Place[]) => readonly Kept[];
  /** Tokens of a block's own text and verbatim texts. */
  readonly tokensOf: (topic: string, segments: readonly Segment[], kept: readonly Kept[]) => number;
}

/** A range whose block can be stored. */
export interface ResolvedRange {
  /** `m010–m031`, the stored range. */
  readonly label: string;
  readonly span: Span;
  /** Differences from the requested range, as sentences. */
  readonly widened: readonly string[];
  readonly entryIds: readonly string[];
  /** Ids of nested blocks. */
  readonly children: readonly string[];
  readonly body: readonly Segment[];
  readonly kept: readonly Kept[];
  readonly tokensBefore: number;
  readonly tokensAfter: number;
  /** Whether wrong placeholders were repaired. */
  readonly isRepaired: boolean;
}

export type Resolution =
  | { readonly kind: "resolved"; readonly topic: string; readonly ranges: readonly ResolvedRange[] }
  | {
      readonly kind: "refused";
      readonly problems: readonly string[];
      readonly candidates: readonly Candidate[];
      /** Whether placeholders are part of the problem. */
      readonly hasPlaceholders: boolean;
    };

/** The number of protected newest turns. */
export function protectedTurns({ usage }: View, recent: number): number {
  return usage !== undefined && usage.share >= usage.max ? 1 : recent;
}

/** Returns everything that a call would store, or all of its problems; a call is never applied in part. */
export function resolve({ topic, ranges }: CompressCall, view: View, rules: ResolveRules): Resolution {
  const turns = protectedTurns(view, rules.protectRecentTurns);
  const tail = tailOf(view, turns);
  const problems: string[] = [];
  const tell = (at: number, problem: string): void => {
    problems.push(ranges.length === 1 ? problem : `ranges[${at}]: ${problem}`);
  };
  const spans = ranges.map((range, at) => namedSpan(range, view, (problem) => tell(at, problem)));
  const starts = new Set(spans.map((span) => span?.from));
  const wide = spans.map((span) => (span === undefined ? undefined : widened(span, view, { tail, starts })));
  problems.push(...overlaps(wide, view));
  let hasPlaceholders = false;
  const resolved = ranges.flatMap(({ summary }, at): ResolvedRange[] => {
    const span = wide[at];
    if (span === undefined) return [];
    const before = problems.length;
    for (const problem of placeProblems(span, view, { tail, turns })) tell(at, problem);
    const { range, wrong } = blockOf({ topic, summary }, span, view, rules);
    if (wrong.length > 0) hasPlaceholders = true;
    for (const problem of wrong) tell(at, problem);
    const protectedUnits = range.kept.reduce((sum, { text }) => sum + text.length, 0);
    if (protectedUnits > rules.mostKept) tell(at, say.tooMuchKept(range.label, protectedUnits, rules.mostKept));
    if (range.kept.length > maxKept) tell(at, say.tooManyKept(range.label, range.kept.length, maxKept));
    if (problems.length === before) for (const problem of sizeProblems(range, rules)) tell(at, problem);
    return [range];
  });
  if (problems.length === 0) return { kind: "resolved", topic, ranges: resolved };
  const candidates = candidatesIn(view, { minTokens: rules.minRangeTokens, turns });
  return { kind: "refused", problems: problems.slice(0, say.mostFindings), candidates, hasPlaceholders };
}

function namedSpan({ startId, endId }: RangeCall, view: View, tell: (problem: string) => void): Span | undefined {
  const start = placeOf(startId, view, tell);
  const end = endId === startId ? start : placeOf(endId, view, tell);
  if (start === undefined || end === undefined) return undefined;
  if (start.place <= end.place) return { from: start.place, to: end.place };
  tell(say.wrongOrder(start.id, end.id));
  return undefined;
}

function placeOf(written: string, view: View, tell: (problem: string) => void) {
  const id = readId(written);
  if (id === undefined) {
    tell(say.malformedId(written.slice(0, 64).toWellFormed()));
    return undefined;
  }
  const located = view.locate(id);
  if (located.kind === "at") return { id: id.id, place: located.place };
  const problem = {
    unknown: () => say.unknownId(id.id, located.kind === "unknown" ? located.newest : undefined),
    gone: () => say.goneId(id.id),
    hidden: () => say.hiddenId(id.id, located.kind === "hidden" ? located.block : ""),
    consumed: () => say.consumedBlock(id.id, located.kind === "consumed" ? located.parent : ""),
    inactive: () => say.inactiveBlock(id.id),
  }[located.kind];
  tell(problem());
  return undefined;
}

interface WideSpan extends Span {
  /** The span was extended by an answer without an id. */
  readonly hasAnswer: boolean;
  readonly sentences: readonly string[];
}

/** Widens the span to whole groups, and by a following answer without an id. */
function widened(
  { from, to }: Span,
  view: View,
  { tail, starts }: { readonly tail: number; readonly starts: ReadonlySet<number | undefined> },
): WideSpan {
  const { places } = view;
  const sentences: string[] = [];
  const begin = places[from]?.from ?? from;
  let end = places[to]?.to ?? to;
  if (begin < from) sentences.push(startSentence(view, { from: begin, to: from }));
  if (end > to) sentences.push(endSentence(view, { from: to, to: end }));
  const next = places[end + 1];
  const isAnswer = next?.role === "assistant" && next.to === end + 1 && !hasCalls(next);
  const hasAnswer = isAnswer && end + 1 < tail && !starts.has(end + 1);
  if (hasAnswer) {
    sentences.push(`The answer after ${places[end]?.id ?? labelOf(view, { from: begin, to: end })} is part of it.`);
    end += 1;
  }
  return { from: begin, to: end, hasAnswer, sentences };
}

function startSentence(view: View, span: Span): string {
  const id = view.places[span.to]?.id ?? "";
  const first = view.places.slice(span.from, span.to).find((place) => place.id !== undefined)?.id;
  return first === undefined ? `The call of ${id} is part of it.` : `It begins with ${first}: calls stay with results.`;
}

function endSentence(view: View, span: Span): string {
  const last = view.places.slice(span.from + 1, span.to + 1).findLast((place) => place.id !== undefined)?.id;
  return last === undefined
    ? `All results of ${view.places[span.from]?.id ?? "its last call"} are part of it.`
    : `It ends with ${last}: calls stay with results.`;
}

function hasCalls({ messages }: Place): boolean {
  return messages.some(
    (message) => message.role === "assistant" && message.content.some(({ type }) => type === "toolCall"),
  );
}

function overlaps(spans: readonly (Span | undefined)[], view: View): string[] {
  return spans.flatMap((one, at) =>
    spans.flatMap((other, place) => {
      if (one === undefined || other === undefined || place <= at) return [];
      const both = { from: Math.max(one.from, other.from), to: Math.min(one.to, other.to) };
      return both.from > both.to ? [] : [say.overlapping(at, place, labelOf(view, both))];
    }),
  );
}

/** The problems of places that must not be compressed. */
function placeProblems(span: WideSpan, view: View, { tail, turns }: { tail: number; turns: number }): string[] {
  const inside = placesIn(view, span);
  const problems: string[] = [];
  const isOwn = view.own !== undefined && view.own >= span.from && view.own <= span.to;
  if (isOwn) problems.push(say.ownCall);
  const obstacles = new Set(inside.flatMap((place) => obstacleOf(place) ?? []));
  problems.push(...[...obstacles].map(say.notCompressible));
  for (const [at, { isPending, id }] of inside.entries()) {
    const place = span.from + at;
    if (isPending) problems.push(say.beingDelivered(id ?? labelOf(view, { from: place, to: place })));
  }
  if (!isOwn && span.to >= tail) {
    const late = { from: Math.max(tail, span.from), to: span.to };
    const label = labelOf(view, late);
    const max = turns === 1 ? undefined : view.usage?.max;
    problems.push(say.protectedTail(label, !label.includes("–"), turns, max));
  }
  const [first, second] = inside;
  const isAlone = second === undefined || (inside.length === 2 && span.hasAnswer);
  if (first?.block !== undefined && isAlone) problems.push(say.oneBlock(first.block.id));
  return problems;
}

function blockOf(
  { topic, summary }: { readonly topic: string; readonly summary: string },
  span: WideSpan,
  view: View,
  rules: ResolveRules,
): { readonly range: ResolvedRange; readonly wrong: readonly string[] } {
  const inside = placesIn(view, span);
  const blocks = inside.flatMap(({ block }) => block ?? []);
  const children = blocks.map(({ id }) => id);
  const label = labelOf(view, span);
  const segments = segmentsOf(summary);
  const wrong = placeholderProblems(segments, children, label);
  const body = wrong.length === 0 ? segments : withRequired(segments, children);
  const kept = rules.keptOf(inside);
  const nested = blocks.reduce((sum, { tokensAfter }) => sum + tokensAfter, 0);
  const range: ResolvedRange = {
    label,
    span: { from: span.from, to: span.to },
    widened: span.sentences,
    entryIds: inside.flatMap(({ entryIds }) => entryIds),
    children,
    body,
    kept,
    tokensBefore: tokensIn(view, span),
    tokensAfter: rules.tokensOf(topic, body, kept) + nested,
    isRepaired: wrong.length > 0,
  };
  return { range, wrong: rules.placeholders === "strict" ? wrong : [] };
}

function sizeProblems({ label, tokensBefore, tokensAfter }: ResolvedRange, rules: ResolveRules): string[] {
  if (tokensBefore < rules.minRangeTokens) return [say.tooSmall(label, tokensBefore, rules.minRangeTokens)];
  const isSaving = tokensAfter < (1 - rules.minSavings) * tokensBefore;
  return isSaving ? [] : [say.noSaving(tokensAfter, tokensBefore, rules.minSavings)];
}
