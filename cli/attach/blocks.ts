import { type Component, Markdown, wrapTextWithAnsi } from "@earendil-works/pi-tui";
import { stripVTControlCharacters } from "../node-builtins.ts";
import type { Style } from "../output.ts";
import { toolLine } from "../run-printer.ts";
import { oneLine, printable, shorten } from "../text.ts";
import { elapsed, type Said, type ToolCall, type ToolResult } from "./canvas.ts";
import { highlightChange } from "./highlight.ts";
import { safeRow, type Theme } from "./theme.ts";

/** What all blocks of a screen share. */
export interface BlockStyle {
  readonly theme: Theme;
  /** Whether the reader wants to see all of it. */
  isThinkingShown: boolean;
  isOutputShown: boolean;
}

/** Rows of a tool's output or of a long message that are shown before the reader asks for all. */
const foldedRows = 10;
/** Characters of a tool's output that are kept. */
const maxOutput = 200_000;
/** A streaming text is parsed again for each frame, so a longer one is continued in another block, at a paragraph. */
const maxOpenText = 4_096;
/** Without a paragraph that can be shown on its own, it is divided at this length. */
const maxUndivided = 16_384;

/** A part of the conversation. Its rows are drawn once for each width, and cannot control the terminal. */
export abstract class Block implements Component {
  /** Whether an empty row precedes it. */
  readonly isApart: boolean;
  #rows: readonly string[] = [];
  #width = 0;
  #isCurrent = false;

  constructor(isApart: boolean) {
    this.isApart = isApart;
  }

  /** The first `fixed` rows stay as they were drawn last. */
  render(width: number, fixed = 0): string[] {
    const before = this.#width === width ? fixed : 0;
    if (!this.#isCurrent || this.#width !== width) {
      if (before === Number.POSITIVE_INFINITY) return this.#rows as string[];
      const rows = this.#draw(width);
      this.#rows = before === 0 ? rows : [...this.#rows.slice(0, before), ...rows.slice(before)];
      this.#width = width;
      this.#isCurrent = true;
    }
    return this.#rows as string[];
  }

  invalidate(): void {
    this.#isCurrent = false;
  }

  protected abstract draw(width: number): readonly string[];

  #draw(width: number): readonly string[] {
    let rows: readonly string[];
    try {
      rows = this.draw(width);
    } catch {
      // Markdown that is nested too deeply, for example.
      rows = [" (this text cannot be shown)"];
    }
    return rows.map((row) => safeRow(row, width).trimEnd());
  }
}

export class LineBlock extends Block {
  readonly #text: string;
  readonly #style: Style | undefined;
  readonly #theme: Theme;

  constructor(text: string, style: Style | undefined, { theme }: BlockStyle) {
    super(false);
    this.#text = printable(text);
    this.#style = style;
    this.#theme = theme;
  }

  protected draw(width: number): readonly string[] {
    return wrapped(this.#text, width, (row) => (this.#style === undefined ? row : this.#theme.paint(this.#style, row)));
  }
}

/** A message of a user, an extension or a client. */
export class SaidBlock extends Block {
  readonly #said: Said;
  readonly #shared: BlockStyle;

  constructor({ mark, text, images }: Said, shared: BlockStyle) {
    super(true);
    this.#said = { mark: oneLine(mark), text: printable(text.slice(0, maxOutput)).trimEnd(), images };
    this.#shared = shared;
  }

  protected draw(width: number): readonly string[] {
    const { mark, text, images } = this.#said;
    const { theme, isOutputShown } = this.#shared;
    const rows = wrapped(`${mark} ${[text, ...images.map(oneLine)].join("\n")}`, width - 2, (row) =>
      theme.paint("cyan", row),
    ).map((row, index) => (index === 0 ? row : `  ${row}`));
    return folded(rows, isOutputShown, theme);
  }
}

/** A part of the assistant's text, as Markdown, while it streams and afterwards. */
export class TextBlock extends Block {
  readonly #markdown: Markdown;
  #text = "";

  constructor({ theme }: BlockStyle) {
    super(true);
    this.#markdown = new Markdown("", 0, 0, theme.markdown);
  }

  /** Returns the end of a long text, with which the next block must begin. */
  append(text: string): string | undefined {
    this.#text += printable(text);
    const divided = this.#text.length > maxOpenText ? divide(this.#text) : undefined;
    if (divided !== undefined) this.#text = divided.text;
    this.#markdown.setText(this.#text);
    this.invalidate();
    return divided?.rest;
  }

  protected draw(width: number): readonly string[] {
    const rows = this.#markdown.render(width);
    // A list ends with an empty row, and the transcript adds its own between blocks.
    return rows.slice(0, rows.findLastIndex((row) => row.trim() !== "") + 1);
  }
}

/** The model's thinking: one row, unless the reader wants to see it. */
export class ThinkingBlock extends Block {
  readonly #shared: BlockStyle;
  #text = "";

  constructor(shared: BlockStyle) {
    super(true);
    this.#shared = shared;
  }

  append(text: string): undefined {
    this.#text += printable(text);
    this.invalidate();
  }

  protected draw(width: number): readonly string[] {
    const { theme, isThinkingShown } = this.#shared;
    const dim = (row: string): string => theme.paint("dim", row);
    if (isThinkingShown) return wrapped(this.#text.trim(), width, (row) => theme.paint("italic", dim(row)));
    const hint = " (Ctrl-T shows it)";
    const gist = shorten(oneLine(this.#text.trim().slice(0, 1_000)), Math.max(8, width - 12 - hint.length));
    return [dim(`thinking: ${gist}${hint}`)];
  }
}

/** A tool call, its output while it runs, and its result. */
export class ToolBlock extends Block {
  readonly call: ToolCall;
  readonly #title: string;
  readonly #shared: BlockStyle;
  #output = "";
  #result: ToolResult | undefined;

  constructor(call: ToolCall, shared: BlockStyle) {
    super(true);
    this.call = call;
    this.#title = toolLine(call.name, call.args);
    this.#shared = shared;
  }

  output(text: string, append: boolean): void {
    this.#output = ((append ? this.#output : "") + withoutStyles(text.slice(-maxOutput))).slice(-maxOutput);
    this.invalidate();
  }

  ended(result: ToolResult): void {
    this.#result = result;
    this.#output = withoutStyles(result.text.slice(0, maxOutput));
    this.invalidate();
  }

  protected draw(width: number): readonly string[] {
    const { theme, isOutputShown } = this.#shared;
    const { diff, images = [], isError = false, name, tookMs } = this.#result ?? {};
    const paint = (row: string): string => theme.paint(isError ? "red" : "dim", row);
    const rows =
      diff === undefined
        ? wrapped(this.#output.trimEnd(), width - 2, paint)
        : wrapped(printable(diff.slice(0, maxOutput)), width - 2, (row) =>
            highlightChange(row, (format, text) => theme.paint(format, text)),
          );
    const took = tookMs === undefined ? "" : ` (${elapsed(tookMs)})`;
    const end =
      name === undefined
        ? []
        : [theme.paint(isError ? "red" : "green", `${isError ? "✘" : "✔"} ${oneLine(name)}${took}`)];
    const shown = this.#result === undefined ? rows.slice(-foldedRows) : folded(rows, isOutputShown, theme);
    return [
      theme.paint("bold", this.#title),
      ...[...shown, ...images.map((image) => paint(image)), ...end].map((row) => `  ${row}`),
    ];
  }
}

/** Programs colour their output; without the whole sequences, parts of them would be shown. */
function withoutStyles(output: string): string {
  return printable(stripVTControlCharacters(output));
}

function wrapped(text: string, width: number, paint: (row: string) => string): readonly string[] {
  if (text === "") return [];
  return text
    .replaceAll("\t", "    ")
    .split("\n")
    .flatMap((line) => wrapTextWithAnsi(line, Math.max(1, width)).map(paint));
}

function folded(rows: readonly string[], isShown: boolean, theme: Theme): readonly string[] {
  if (isShown || rows.length <= foldedRows + 1) return rows;
  const more = theme.paint("dim", `… ${rows.length - foldedRows} more lines (Ctrl-O shows them)`);
  return [...rows.slice(0, foldedRows), more];
}

/** Divides a long Markdown text before its last paragraph; undefined if that may still belong to what precedes it. */
function divide(markdown: string): { readonly text: string; readonly rest: string } | undefined {
  let fence: string | undefined;
  let offset = 0;
  /** The end of the last empty line, and of the last one before a line that continues no list or quotation. */
  let gap = 0;
  let end = 0;
  for (const line of markdown.split("\n")) {
    if (fence === undefined && offset > 0 && offset === gap && /^[^\s>*+\d-]/.test(line)) end = gap;
    const mark = /^ {0,3}(```|~~~)[^`]*$/.exec(line);
    if (mark !== null) fence = fence === undefined ? line.trim() : undefined;
    offset += line.length + 1;
    if (fence === undefined && line.trim() === "" && offset < markdown.length) gap = offset;
  }
  if (end === 0 && markdown.length > maxUndivided) end = gap;
  if (end > 0) return { text: markdown.slice(0, end), rest: markdown.slice(end) };
  if (markdown.length <= maxUndivided) return undefined;
  const cut = markdown.lastIndexOf("\n", maxUndivided) + 1 || maxUndivided;
  const [close, open] = fence === undefined ? ["", ""] : [`\n${fence.slice(0, 3)}`, `${fence}\n`];
  return { text: markdown.slice(0, cut) + close, rest: open + markdown.slice(cut) };
}
