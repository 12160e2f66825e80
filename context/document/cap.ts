import type { TextPart } from "../../protocol/link-context.ts";
import type { ContextItem, ContextPart } from "./document.ts";
import { acceptedToolName } from "./ids.ts";
import type { ToolResultCaps } from "./options.ts";

/**
 * Shortens long tool results to a head and a tail, with a mark between them that states the original length. Images are
 * kept.
 */
export function capToolResults(
  items: readonly ContextItem[],
  { maxChars = null, perTool = {} }: ToolResultCaps,
): readonly ContextItem[] {
  const caps = capsByName(perTool);
  if (maxChars === null && caps.size === 0) return items;
  return items.map((item) => {
    if (item.role !== "toolResult") return item;
    const own = caps.get(item.toolName ?? "");
    const max = own === undefined ? maxChars : own;
    if (max === null) return item;
    const content = capContent(item.content, max);
    return content === item.content ? item : { ...item, content };
  });
}

/** Caps by tool name, both original and repaired. */
function capsByName(perTool: Readonly<Record<string, number | null>>): ReadonlyMap<string, number | null> {
  const given = Object.entries(perTool);
  const repaired = ["", "google"].flatMap((api) =>
    given.map(([name, max]) => [acceptedToolName(name, { api }), max] as const),
  );
  return new Map([...repaired, ...given]);
}

/** Length of all texts in UTF-16 units. */
export function textLength(content: readonly { readonly type: string }[]): number {
  let length = 0;
  for (const part of content) if (isText(part)) length += part.text.length;
  return length;
}

/** Shortens content to at most `max` UTF-16 units of text, including the mark. `max` is at least 200. */
export function capContent<P extends ContextPart>(content: readonly P[], max: number): readonly P[] {
  const length = textLength(content);
  if (length <= max) return content;
  const original = Math.max(length, originalLength(content));
  const kept = Math.max(max - markOf(original, original).length, 0);
  const headEnd = Math.ceil(kept / 2);
  const tailStart = length - (kept - headEnd);
  const mark = markOf(original - kept, original);
  const capped: P[] = [];
  let at = 0;
  let isMarked = false;
  for (const part of content) {
    if (!isText(part)) {
      capped.push(part);
      continue;
    }
    const head = cutBefore(part.text, headEnd - at);
    const tail = cutAfter(part.text, tailStart - at);
    // The mark is in the part where the head ends.
    const marksHere: boolean = !isMarked && at + part.text.length > headEnd;
    isMarked ||= marksHere;
    at += part.text.length;
    const text = `${head}${marksHere ? mark : ""}${tail}`;
    if (text !== "") capped.push({ ...part, text });
  }
  return capped;
}

function isText(part: { readonly type: string }): part is TextPart {
  return part.type === "text";
}

function markOf(leftOut: number, original: number): string {
  return `\n[… ${leftOut} of ${original} characters left out …]\n`;
}

const marks = /\n\[… \d{1,15} of (\d{1,15}) characters left out …\]\n/g;

/** Original length from the mark of an earlier cut; 0 if there was none. */
function originalLength(content: readonly { readonly type: string }[]): number {
  let length = 0;
  for (const part of content) {
    if (!isText(part)) continue;
    for (const [, original] of part.text.matchAll(marks)) length = Math.max(length, Number(original));
  }
  return length;
}

/** Returns the text up to an index, without splitting a surrogate pair. */
function cutBefore(text: string, end: number): string {
  if (end <= 0) return "";
  if (end >= text.length) return text;
  return text.slice(0, isHighSurrogate(text.charCodeAt(end - 1)) ? end - 1 : end);
}

/** Returns the text from an index, without splitting a surrogate pair. */
function cutAfter(text: string, start: number): string {
  if (start >= text.length) return "";
  if (start <= 0) return text;
  return text.slice(isHighSurrogate(text.charCodeAt(start - 1)) ? start + 1 : start);
}

function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code <= 0xdbff;
}
