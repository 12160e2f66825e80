import type { SearchHit } from "../../protocol/transcript-methods.ts";
import type { Item } from "./items.ts";

/** What kind of text a hit is in, as the daemon names it. */
export type HitKind = SearchHit["kind"];

/** A part of a text around a match, in one line. */
export interface Excerpt {
  readonly before: string;
  readonly match: string;
  readonly after: string;
}

const charsBefore = 80;
const charsAfter = 160;

/** Matches a text literally, in any case, as the daemon does. */
export function literal(query: string, flags: "iu" | "giu" = "iu"): RegExp {
  return new RegExp(query.replace(/[$()*+./?[\\\]^{|}]/g, "\\$&"), flags);
}

/** The texts of a row that are searched, if the page has them. */
export function textsOf(item: Item): readonly (readonly [kind: HitKind, text: string])[] {
  switch (item.kind) {
    case "user":
      return [["user", item.text.text.value]];
    case "text":
      return [["assistant", item.text.text.value]];
    case "thought":
      return [["thinking", item.text.text.value]];
    case "push":
      return [["custom", item.text.text.value]];
    case "tool":
      return [
        [item.isOfUser ? "bash" : "toolCall", item.args.text.value],
        [item.isOfUser ? "bash" : "toolResult", item.output?.text.value ?? ""],
      ];
    case "note":
      return [
        ["summary", item.detail?.text.value ?? ""],
        ["name", item.about === "name" ? item.words : ""],
      ];
    case "gap":
      return [];
  }
}

/** The excerpt of a text that the page has. */
export function excerptAround(text: string, start: number, length: number): Excerpt {
  const from = Math.max(0, start - charsBefore);
  const to = Math.min(text.length, start + length + charsAfter);
  const end = start + length;
  return {
    before: `${from > 0 ? "…" : ""}${oneLine(text.slice(from, start)).replace(/^[\udc00-\udfff]/, "")}`,
    match: oneLine(text.slice(start, end)),
    after: `${oneLine(text.slice(end, to)).replace(/[\ud800-\udbff]$/, "")}${to < text.length ? "…" : ""}`,
  };
}

/** The excerpt of a hit of the daemon. */
export function excerptOf(hit: SearchHit): Excerpt {
  const { excerpt, matchStart, matchLength, isCutAtStart, isCutAtEnd } = hit;
  const end = matchStart + matchLength;
  return {
    before: `${isCutAtStart === true ? "…" : ""}${oneLine(excerpt.slice(0, matchStart))}`,
    match: oneLine(excerpt.slice(matchStart, end)),
    after: `${oneLine(excerpt.slice(end))}${isCutAtEnd === true ? "…" : ""}`,
  };
}

/** Text with every white space as one space. */
export function oneLine(text: string): string {
  return text.replace(/\s+/g, " ");
}
