import type { Output, Style } from "../output.ts";
import { printable } from "../text.ts";

/** Where a session is shown. Texts contain no control characters except line breaks and tabs. */
export interface Canvas {
  /** Appends to the current text. */
  stream(text: string, style?: Style): void;
  /** Prints separate lines after the current text. */
  line(text: string, style?: Style): void;
  /** Later output begins on a new line. */
  endLine(): void;
}

/** For a pipe or a terminal without input: writes directly. */
export class PlainCanvas implements Canvas {
  readonly #output: Output;
  #isOpen = false;

  constructor(output: Output) {
    this.#output = output;
  }

  stream(text: string, style?: Style): void {
    if (text === "") return;
    this.#output.write(style === undefined ? printable(text) : this.#output.paint(style, text));
    this.#isOpen = !text.endsWith("\n");
  }

  line(text: string, style?: Style): void {
    this.endLine();
    this.#output.printText(style === undefined ? text : this.#output.paint(style, text));
  }

  endLine(): void {
    if (this.#isOpen) this.#output.write("\n");
    this.#isOpen = false;
  }
}
