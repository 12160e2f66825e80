import { borders, type Kept } from "./json-borders.ts";

/** A text that exceeds its limit. */
export interface CutSource {
  readonly text: string;
  /** The whole text if `text` is only its end: the log of a command. */
  readonly whole?: string;
}

/** The longest mark between head and tail. */
export const longestMark = 160;

/**
 * Returns the beginning and the end of a text, with a mark between them that names the original's size and id, in at
 * most `head` + `tail` + {@link longestMark} units. Cuts at line ends, and JSON between elements, if at least half of
 * the length remains; otherwise between two characters. `undefined`: the result would not be shorter.
 */
export function cutText({ text, whole = text }: CutSource, kept: Kept, recallId: string): string | undefined {
  const json = whole === text ? borders(text, kept) : undefined;
  const head = json === undefined ? headOf(whole, kept.head) : text.slice(0, json.headEnd);
  const tail = json === undefined ? tailOf(text, kept.tail) : text.slice(json.tailStart);
  const lines = linesOf(whole);
  const size = `${whole.length} characters, ${lines} ${lines === 1 ? "line" : "lines"} in all; recall ${recallId}`;
  const mark =
    json === undefined ? `[… cut: ${size} …]` : `[… ${json.leftOut} of ${json.elements} elements left out: ${size} …]`;
  const parts = [head.replace(/\n$/u, ""), mark, tail].filter((part) => part !== "");
  const made = parts.join("\n").toWellFormed();
  return made.length < text.length ? made : undefined;
}

function headOf(text: string, max: number): string {
  if (text.length <= max) return text;
  const end = text.lastIndexOf("\n", max - 1) + 1;
  return text.slice(0, end >= max / 2 ? end : isInsidePair(text, max) ? max - 1 : max);
}

function tailOf(text: string, max: number): string {
  if (text.length <= max) return text;
  const from = text.length - max;
  const start = text.indexOf("\n", from - 1) + 1;
  if (start > 0 && start <= text.length - max / 2) return text.slice(start);
  return text.slice(isInsidePair(text, from) ? from + 1 : from);
}

/** Whether this is the middle of a surrogate pair. */
function isInsidePair(text: string, at: number): boolean {
  const before = text.charCodeAt(at - 1);
  const after = text.charCodeAt(at);
  return before >= 0xd800 && before <= 0xdbff && after >= 0xdc00 && after <= 0xdfff;
}

function linesOf(text: string): number {
  let lines = text === "" || text.endsWith("\n") ? 0 : 1;
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) lines += 1;
  return lines;
}
