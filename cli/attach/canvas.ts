import type { Output, Style } from "../output.ts";
import { printable } from "../text.ts";

/** Where a session is shown. Texts hold no control characters but line breaks and tabs. */
export interface Canvas {
  /** Appends to the text that grows. */
  stream(text: string, style?: Style): void;
  /** Lines of their own, behind the text that grows. */
  line(text: string, style?: Style): void;
  /** What follows begins on a line of its own. */
  endLine(): void;
}

/** For a pipe, and for a terminal that nobody types on: written as it comes. */
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
