import type { Segment } from "../record.ts";
import { duplicatePlaceholder, foreignPlaceholder, missingPlaceholder } from "./messages.ts";

/** Stands before blocks whose placeholders the summary does not have. */
const appendedHeading = "Compressed before, and part of this section:";

const placeholder = /\\?\(b0{0,8}([1-9][0-9]{0,8})\)/giu;

/** A summary's words, and the placeholders in them. `\(b2)` is the words `(b2)`. */
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

/** What is wrong with a summary's placeholders, where each of `required` has to be there once, and no other. */
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
 * The same with each of `required` once: what is missing comes last, under a heading, and what is foreign or there again
 * becomes words.
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
