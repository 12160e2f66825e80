import type { Output, Style } from "../output.ts";
import { printable } from "../text.ts";
import type { Canvas } from "./canvas.ts";
import { textWidth, widthOf } from "./width.ts";

/** The content of the last row, which is the input. */
export interface InputRow {
  /** The row in at most `width` columns, and the cursor's column in it. */
  view(width: number): { readonly label: string; readonly text: string; readonly column: number };
}

interface Piece {
  readonly text: string;
  readonly style: Style | undefined;
}

const tab = "    ";
/** A longer word is broken. */
const maxMovedWord = 30;

/**
 * A terminal whose last row is the input, while the output scrolls above it: only the last two rows are drawn again.
 * Rows are broken here, at words, so that the last row is known.
 */
export class LiveCanvas implements Canvas {
  readonly #output: Output;
  readonly #input: InputRow;
  /** The unfinished row above the input. */
  #row: Piece[] = [];
  #width = 0;
  #rowIsDrawn = false;
  #isClosed = false;

  constructor(output: Output, input: InputRow) {
    this.#output = output;
    this.#input = input;
  }

  stream(text: string, style?: Style): void {
    this.#show(this.#add(text, style));
  }

  line(text: string, style?: Style): void {
    const ended = this.#end();
    this.#show(ended + this.#add(`${text}\n`, style));
  }

  endLine(): void {
    const ended = this.#end();
    if (ended !== "") this.#show(ended);
  }

  /** Draws the input again after it or the window has changed. */
  redraw(): void {
    this.#show("");
  }

  /** Removes the input; later output is written directly. */
  close(): void {
    if (this.#isClosed) return;
    this.#output.write(`${this.#clear()}${this.#render()}${this.#row.length > 0 ? "\n" : ""}`);
    this.#isClosed = true;
    this.#row = [];
  }

  get #columns(): number {
    // The last column stays empty because terminals treat it differently.
    return Math.max(20, this.#output.columns ?? 80) - 1;
  }

  /** Appends a text and returns the completed rows. */
  #add(text: string, style: Style | undefined): string {
    let complete = "";
    const parts = printable(text).replaceAll("\t", tab).split(/(\n)/);
    for (const part of parts) {
      if (part === "\n") complete += this.#endRow();
      else for (const word of part.match(/ +|[^ ]+/g) ?? []) complete += this.#addWord({ text: word, style });
    }
    return complete;
  }

  #addWord(word: Piece): string {
    const width = textWidth(word.text);
    if (this.#width + width <= this.#columns) {
      this.#push(word, width);
      return "";
    }
    if (word.text.startsWith(" ")) return this.#endRow();
    const head = this.#isWithinWord() ? this.#takeWord() : [];
    const moved = head.reduce((sum, piece) => sum + textWidth(piece.text), 0);
    if (this.#width > 0 && moved + width <= Math.max(maxMovedWord, this.#columns / 2)) {
      const ended = this.#endRow();
      for (const piece of [...head, word]) this.#push(piece, textWidth(piece.text));
      return ended;
    }
    for (const piece of head) this.#push(piece, textWidth(piece.text));
    return this.#addBroken(word);
  }

  #addBroken({ text, style }: Piece): string {
    let complete = "";
    let fitting = "";
    let width = 0;
    const flush = (): void => this.#push({ text: fitting, style }, width);
    for (const character of text) {
      const more = widthOf(character);
      if (this.#width + width + more > this.#columns) {
        flush();
        complete += this.#endRow();
        [fitting, width] = ["", 0];
      }
      fitting += character;
      width += more;
    }
    flush();
    return complete;
  }

  #isWithinWord(): boolean {
    const last = this.#row.at(-1)?.text;
    return last !== undefined && !last.endsWith(" ");
  }

  /** Removes the last word of the row: it may be incomplete. */
  #takeWord(): Piece[] {
    const pieces: Piece[] = [];
    while (this.#isWithinWord()) {
      const piece = this.#row.pop() as Piece;
      this.#width -= textWidth(piece.text);
      pieces.unshift(piece);
    }
    return pieces;
  }

  #push(piece: Piece, width: number): void {
    if (piece.text === "") return;
    this.#row.push(piece);
    this.#width += width;
  }

  #end(): string {
    return this.#row.length === 0 ? "" : this.#endRow();
  }

  #endRow(): string {
    const row = `${this.#render()}\n`;
    this.#row = [];
    this.#width = 0;
    return row;
  }

  #render(): string {
    const joined: Piece[] = [];
    for (const piece of this.#row) {
      const last = joined.at(-1);
      if (last?.style === piece.style && last !== undefined)
        joined[joined.length - 1] = { ...last, text: last.text + piece.text };
      else joined.push(piece);
    }
    return joined.map(({ text, style }) => (style === undefined ? text : this.#output.paint(style, text))).join("");
  }

  #show(complete: string): void {
    if (this.#isClosed) {
      this.#output.write(complete + this.#render());
      this.#row = [];
      return;
    }
    const clear = this.#clear();
    this.#rowIsDrawn = this.#row.length > 0;
    const { label, text, column } = this.#input.view(this.#columns);
    const cursor = column === 0 ? "\r" : `\r\u001b[${column}C`;
    const input = `${this.#output.paint("cyan", label)}${text}${cursor}`;
    this.#output.write(`${clear}${complete}${this.#render()}${this.#rowIsDrawn ? "\n" : ""}${input}`);
  }

  /** Moves to the first column of the drawn rows and clears everything below. */
  #clear(): string {
    return `\r${this.#rowIsDrawn ? "\u001b[1A" : ""}\u001b[J`;
  }
}
