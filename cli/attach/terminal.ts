import { ProcessTerminal, visibleWidth } from "@earendil-works/pi-tui";

const minColumns = 20;

/** The terminal of this process. If its locale is not Unicode, it gets ASCII. */
export class ScreenTerminal extends ProcessTerminal {
  readonly #isUnicode: boolean;

  constructor(env: NodeJS.ProcessEnv) {
    super();
    this.#isUnicode = hasUnicode(env);
  }

  override get columns(): number {
    return Math.max(minColumns, super.columns);
  }

  override write(data: string): void {
    super.write(this.#isUnicode ? data : toAscii(data));
  }
}

/** Whether the locale's encoding is UTF-8. Without any locale, as in many containers, it is assumed. */
export function hasUnicode(env: NodeJS.ProcessEnv): boolean {
  const locale = env["LC_ALL"] || env["LC_CTYPE"] || env["LANG"] || "UTF-8";
  return /utf-?8/i.test(locale);
}

const replacements: Readonly<Record<string, string>> = {
  ...{ "─": "-", "│": "|", "┌": "+", "┐": "+", "└": "+", "┘": "+", "├": "+", "┤": "+", "┬": "+", "┴": "+", "┼": "+" },
  ...{ "❯": ">", "»": ">", "→": ">", "✔": "+", "✘": "x", "…": ".", "·": "-", "•": "*", "–": "-", "—": "-" },
  ...{ "‘": "'", "’": "'", "“": '"', "”": '"', "↑": "^", "↓": "v" },
};
const graphemes = new Intl.Segmenter();

/** Replaces each other character by ASCII of the same width. */
export function toAscii(text: string): string {
  return text.replace(/\P{ASCII}+/gu, (run) =>
    Array.from(
      graphemes.segment(run),
      ({ segment }) => replacements[segment] ?? "?".repeat(visibleWidth(segment)),
    ).join(""),
  );
}
