import type { Segment } from "../record.ts";
import { duplicatePlaceholder, foreignPlaceholder, missingPlaceholder } from "./messages.ts";

/** Heading of nested blocks without a placeholder in the summary. */
const appendedHeading = "Compressed before, and part of this section:";

const placeholder = /\\?\(b0{0,8}([1-9][0-9]{0,8})\)/giu;

/** Splits a summary into text and placeholders. `\(b2)` is the text `(b2)`. */
export function segmentsOf(summary: string): Segment[] {
  const segments: Segment[] = [];
  let from = 0;
  let words = "";
  for (const match of summary.matchAll(placeholder)) {
    words += summary.slice(from, match.index);
    from = match.index + match[0].length;
    if (match[0].startsWith("\\")) words += match[0].slice(1);
    else {
      if (words !== "") segments.push({ text: words });
      words = "";
      segments.push({ block: `b${match[1]}` });
    }
  }
  words += summary.slice(from);
  if (words !== "") segments.push({ text: words });
  return segments;
}

/** The problems of a summary's placeholders; it must contain each of `required` exactly once, and no other. */
export function placeholderProblems(
  segments: readonly Segment[],
  required: readonly string[],
  span: string,
): readonly string[] {
  const times = new Map<string, number>();
  for (const segment of segments) {
    if ("block" in segment) times.set(segment.block, (times.get(segment.block) ?? 0) + 1);
  }
  const problems: string[] = [];
  for (const id of required) {
    const count = times.get(id) ?? 0;
    if (count === 0) problems.push(missingPlaceholder(id));
    if (count > 1) problems.push(duplicatePlaceholder(id, count));
  }
  for (const id of times.keys()) if (!required.includes(id)) problems.push(foreignPlaceholder(id, span));
  return problems;
}

/**
 * Returns the segments with each of `required` exactly once: appends missing blocks under a heading and turns foreign and
 * repeated placeholders into text.
 */
export function withRequired(segments: readonly Segment[], required: readonly string[]): Segment[] {
  const left = new Set(required);
  const repaired: Segment[] = segments.map((segment) => {
    if (!("block" in segment) || left.delete(segment.block)) return segment;
    return { text: `compressed ${segment.block}` };
  });
  if (left.size > 0) repaired.push({ text: `\n\n${appendedHeading}\n` });
  const missing = [...left].flatMap((block, at): Segment[] => (at === 0 ? [{ block }] : [{ text: "\n" }, { block }]));
  return joined([...repaired, ...missing]);
}

function joined(segments: readonly Segment[]): Segment[] {
  const result: Segment[] = [];
  for (const segment of segments) {
    const last = result.at(-1);
    if (last !== undefined && "text" in last && "text" in segment) {
      result[result.length - 1] = { text: last.text + segment.text };
    } else result.push(segment);
  }
  return result;
}
