import {
  CURSOR_MARKER,
  type EditorTheme,
  type MarkdownTheme,
  type SelectListTheme,
  truncateToWidth,
  visibleWidth,
} from "@earendil-works/pi-tui";
import { styleText } from "../node-builtins.ts";
import { allowsColour, type Style } from "../output.ts";
import { highlight } from "./highlight.ts";

type Format = Style | "italic" | "underline" | "strikethrough" | "blue" | "gray";

/** The styles of the screen. Without colours, texts are unchanged. */
export class Theme {
  readonly markdown: MarkdownTheme;
  readonly select: SelectListTheme;
  readonly editor: EditorTheme;
  readonly #isColoured: boolean;

  constructor(env: NodeJS.ProcessEnv) {
    this.#isColoured = allowsColour(env);
    const as =
      (...formats: readonly Format[]) =>
      (text: string): string =>
        formats.reduce((styled, format) => this.paint(format, styled), text);
    this.select = {
      selectedPrefix: as("cyan"),
      selectedText: as("cyan"),
      description: as("dim"),
      scrollInfo: as("dim"),
      noMatch: as("dim"),
    };
    this.editor = { borderColor: as("gray"), selectList: this.select };
    this.markdown = {
      heading: as("yellow"),
      link: as("blue", "underline"),
      linkUrl: as("dim"),
      code: as("cyan"),
      codeBlock: (text) => text,
      codeBlockBorder: as("dim"),
      quote: as("italic"),
      quoteBorder: as("dim"),
      hr: as("dim"),
      listBullet: as("cyan"),
      bold: as("bold"),
      italic: as("italic"),
      strikethrough: as("strikethrough"),
      underline: as("underline"),
      highlightCode: (code, language) => highlight(code, language, (format, text) => this.paint(format, text)),
    };
  }

  paint(format: Format, text: string): string {
    return this.#isColoured && text !== "" ? styleText(format, text, { validateStream: false }) : text;
  }
}

/** Everything that could control the terminal. Of these, only colours and the cursor's place are kept. */
const sequences =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: colours begin with ESC, which no class of characters names
  /\u001b\[[0-9;]*m|\u001b_pi:c\u0007|[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/** Returns a row that cannot control the terminal and is not wider than `width` columns. */
export function safeRow(row: string, width: number): string {
  const safe = row.replace(sequences, (found) => (found.endsWith("m") || found === CURSOR_MARKER ? found : ""));
  return visibleWidth(safe) > width ? truncateToWidth(safe, width, "") : safe;
}
