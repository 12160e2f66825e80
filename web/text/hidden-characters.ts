// Characters that one cannot see, or that change how others are shown. In a command, a path or a question they could make
// it look like another one, so each is shown by its name.

export interface Part {
  readonly kind: "text" | "name";
  readonly text: string;
}

const names: ReadonlyMap<number, string> = new Map([
  [0, "NUL"],
  [7, "BEL"],
  [8, "BS"],
  [11, "VT"],
  [12, "FF"],
  [13, "CR"],
  [27, "ESC"],
  [127, "DEL"],
  [133, "NEL"],
  [160, "NBSP"],
  [173, "SHY"],
  [0x61c, "ALM"],
  [0x200b, "ZWSP"],
  [0x200c, "ZWNJ"],
  [0x200d, "ZWJ"],
  [0x200e, "LRM"],
  [0x200f, "RLM"],
  [0x2028, "LSEP"],
  [0x2029, "PSEP"],
  [0x202a, "LRE"],
  [0x202b, "RLE"],
  [0x202c, "PDF"],
  [0x202d, "LRO"],
  [0x202e, "RLO"],
  [0x2060, "WJ"],
  [0x2066, "LRI"],
  [0x2067, "RLI"],
  [0x2068, "FSI"],
  [0x2069, "PDI"],
  [0xfeff, "BOM"],
]);

/**
 * Control and format characters, halves of pairs, private and unassigned ones; white space other than spaces, tabs and line
 * ends; what has no shape; and from the fifth on the marks on one letter.
 */
const hidden = /(?![\n\t ])[\p{C}\p{Z}\p{Default_Ignorable_Code_Point}\u2800]|(?<=\p{M}{4})\p{M}/gu;

/** Divides a text into what is shown as it is and the names of hidden characters. */
export function visibleParts(text: string): readonly Part[] {
  const parts: Part[] = [];
  let from = 0;
  for (const { 0: character, index } of text.matchAll(hidden)) {
    if (isOfEmoji(character, text, index)) continue;
    if (index > from) parts.push({ kind: "text", text: text.slice(from, index) });
    from = index + character.length;
    parts.push({ kind: "name", text: nameOf(character) });
  }
  if (from < text.length) parts.push({ kind: "text", text: text.slice(from) });
  return parts;
}

/** The same as a plain text, for what shows no elements: names are in brackets. */
export function visibleText(text: string): string {
  return visibleParts(text)
    .map((part) => (part.kind === "text" ? part.text : `[${part.text}]`))
    .join("");
}

/** Whether it is what makes one picture of the characters around it. */
function isOfEmoji(character: string, text: string, index: number): boolean {
  if (character !== "\ufe0f" && character !== "\u200d") return false;
  const before = /[\p{Extended_Pictographic}\p{Emoji_Modifier}]\ufe0f?$/u.test(
    text.slice(Math.max(0, index - 3), index),
  );
  return before && (character === "\ufe0f" || /^\p{Extended_Pictographic}/u.test(text.slice(index + 1, index + 3)));
}

function nameOf(character: string): string {
  const point = character.codePointAt(0) ?? 0;
  return names.get(point) ?? `U+${point.toString(16).toUpperCase().padStart(4, "0")}`;
}
