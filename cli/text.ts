/** Control characters with which a text could move the cursor, overwrite the screen or reverse the text. */
const controls = /[[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]--[\t\n]]/gv;

/** Returns a text that cannot control a terminal. */
export function printable(text: string): string {
  return text.replaceAll("\r\n", "\n").replace(controls, "");
}

/** Returns the same JSON value as a text that is safe on a terminal: control characters are escaped. */
export function printableJson(json: string): string {
  return json.replace(controls, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** Returns a text as one line. */
export function oneLine(text: string): string {
  return printable(text)
    .trim()
    .replace(/\s*\n\s*/g, " | ")
    .replaceAll("\t", " ");
}

export function shorten(text: string, maxCharacters: number): string {
  const characters = [...text];
  return characters.length <= maxCharacters ? text : `${characters.slice(0, Math.max(0, maxCharacters - 1)).join("")}…`;
}

/** Shortens a line to a number of columns of the terminal. */
export function truncate(line: string, columns: number): string {
  if (widthOf(line) <= columns) return line;
  let kept = "";
  let width = 0;
  for (const { segment } of graphemesOf(line)) {
    width += widthOf(segment);
    if (width > columns - 1) break;
    kept += segment;
  }
  return `${kept}…`;
}

/** Aligns rows in columns, two spaces apart. The last column is truncated at the width, if there is one. */
export function table(
  rows: readonly (readonly string[])[],
  terminalColumns = Number.POSITIVE_INFINITY,
): readonly string[] {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => widthOf(row[column] ?? ""))));
  return rows.map((row) => {
    const cells = row.map((cell, column) =>
      column === row.length - 1 ? cell : cell + " ".repeat((widths[column] ?? 0) - widthOf(cell)),
    );
    return truncate(cells.join("  ").trimEnd(), terminalColumns);
  });
}

/** Wraps a text into lines of at most `width` characters. */
export function wrap(text: string, width: number): readonly string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(/\s+/)) {
    if (line !== "" && line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else {
      line = line === "" ? word : `${line} ${word}`;
    }
  }
  return [...lines, line];
}

let segmenter: Intl.Segmenter | undefined;

/** Created at its first use because creating it takes as long as a third of a short command. */
function graphemesOf(line: string): Intl.Segments {
  segmenter ??= new Intl.Segmenter();
  return segmenter.segment(line);
}

/** Characters of two columns: those that Unicode calls wide, and emoji. */
const wide =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97c\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{1b000}-\u{1b2ff}\u{20000}-\u{3fffd}\p{Emoji_Presentation}]|\p{Extended_Pictographic}\ufe0f/u;

/** The number of columns of a line in a terminal. */
function widthOf(line: string): number {
  if (/^[ -~]*$/.test(line)) return line.length;
  let width = 0;
  for (const { segment } of graphemesOf(line)) {
    if (!/^[\p{M}\p{Cf}]+$/u.test(segment)) width += wide.test(segment) ? 2 : 1;
  }
  return width;
}
