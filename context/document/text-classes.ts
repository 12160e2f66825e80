import { asciiKinds, asciiSteps, beyondAscii, kindCount, markKind } from "./estimate.ts";

/**
 * Kinds of text with different token ratios. `data`: JSON and logs. `wide`: all non-Latin scripts, above all Chinese,
 * Japanese and Korean. `indent`: runs of spaces, which are one token in some services and many in others.
 */
export const textClasses = ["prose", "code", "data", "wide", "indent"] as const;
export type TextClass = (typeof textClasses)[number];
export type TextCounts = Readonly<Record<TextClass, number>>;

/** Length classified as a whole, in UTF-16 units. */
const stretch = 512;

/** Prose below this share of signs among non-space characters. */
const proseBelow = 0.1;
/** Data from this share of quotes, colons and digits. */
const dataFrom = 0.16;
/** Code from this share of spaces and line ends, because code is indented. */
const codeSpacesFrom = 0.28;

/** Character classes of ASCII: prose has few signs, data has many of some. */
const letter = 0;
const sign = 1;
const dataSign = 2;
const blank = 3;
const signs = Uint8Array.from({ length: 128 }, (_, code) => {
  const character = String.fromCharCode(code);
  if (code <= 0x20) return blank;
  if (/[":0-9]/.test(character)) return dataSign;
  return /[!#-&(-+/;-@[-`{-~]/.test(character) ? sign : letter;
});

/** Tokens of each further space in a run. */
const furtherSpace = 0.3;
const spaceKind = asciiKinds[0x20] as number;

/**
 * Counts the tokens of a text by class in one pass, like `estimateText` without its minimum and with runs of spaces.
 */
export function countText(text: string): TextCounts {
  const counts = { prose: 0, code: 0, data: 0, wide: 0, indent: 0 };
  let previous = markKind;
  for (let from = 0; from < text.length; from += stretch) {
    const to = Math.min(from + stretch, text.length);
    let tokens = 0;
    const tally = [0, 0, 0, 0];
    for (let at = from; at < to; at += 1) {
      const code = text.charCodeAt(at);
      if (code < 128) {
        const kind = asciiKinds[code] as number;
        if (kind === spaceKind && previous === spaceKind) counts.indent += furtherSpace;
        else tokens += asciiSteps[kind * kindCount + previous] as number;
        previous = kind;
        const said = signs[code] as number;
        tally[said] = (tally[said] as number) + 1;
      } else {
        if (code < 0x370) tokens += beyondAscii(code);
        else counts.wide += beyondAscii(code);
        previous = markKind;
      }
    }
    counts[classOf(to - from, tally)] += tokens;
  }
  return counts;
}

function classOf(length: number, tally: readonly number[]): TextClass {
  const [, some = 0, ofData = 0, blanks = 0] = tally;
  const visible = Math.max(1, length - blanks);
  if (ofData >= dataFrom * visible) return "data";
  return some + ofData >= proseBelow * visible || blanks >= codeSpacesFrom * length ? "code" : "prose";
}
