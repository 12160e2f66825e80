import type { Delivery } from "../../protocol/delivery.ts";
import { inSeconds } from "../format.ts";
import type { Output, Style } from "../output.ts";
import { describeStep, StepReader } from "../receipt.ts";
import { printable, wrap } from "../text.ts";
import type { Check } from "./checks.ts";

const labelWidth = 10;
const defaultWidth = 100;
const maxWidth = 120;
/** The columns to the left of each text: two spaces, the time, two spaces, the label, two spaces. */
const indent = 2 + 7 + 2 + labelWidth + 2;

/** Prints the demo: a line for each step, with the time since the beginning; or JSON lines. */
export class DemoPrinter {
  readonly #output: Output;
  readonly #startedAt = performance.now();
  readonly #steps = new StepReader();
  readonly #textWidth: number;
  /** The current column of the streaming text. */
  #column: number | undefined;
  #spaceIsDue = false;

  constructor(output: Output) {
    this.#output = output;
    this.#textWidth = Math.max(30, Math.min(output.columns ?? defaultWidth, maxWidth) - indent);
  }

  get elapsedMs(): number {
    return Math.round(performance.now() - this.#startedAt);
  }

  title(text: string, facts: string): void {
    if (this.#output.json) return;
    this.#output.printText(`${this.#output.paint("bold", text)}${this.#output.paint("dim", facts)}\n`);
  }

  /** A step, with its facts for programs. */
  happened(kind: string, text: string, facts: object): void {
    if (this.#output.json) this.#output.document({ kind, elapsedMs: this.elapsedMs, ...facts });
    else this.#line({ label: kind, text, style: "cyan" });
  }

  /** A piece of the model's streaming text. */
  said(delta: string): void {
    if (this.#output.json) {
      this.#output.document({ kind: "text", elapsedMs: this.elapsedMs, delta });
      return;
    }
    if (this.#column === undefined) {
      this.#output.write(this.#head("model", "magenta"));
      this.#column = 0;
    }
    for (const part of printable(delta).match(/\s+|\S+/g) ?? []) {
      if (part.trim() === "") this.#spaceIsDue = this.#column > 0;
      else this.#word(part);
    }
  }

  /** Later output begins on a new line. */
  endOfText(): void {
    if (this.#column !== undefined) this.#output.write("\n");
    this.#column = undefined;
    this.#spaceIsDue = false;
  }

  /** The receipt's new states since the last call. */
  receipt(delivery: Delivery): void {
    for (const step of this.#steps.read(delivery)) {
      const meaning = describeStep(step, delivery);
      if (this.#output.json) this.#output.document({ kind: "receipt", elapsedMs: this.elapsedMs, ...step, meaning });
      else this.#line({ label: step.state, text: meaning, style: "green" });
    }
  }

  check({ name, holds, found }: Check): void {
    if (this.#output.json) {
      this.#output.document({ kind: "check", name, holds, found });
      return;
    }
    this.endOfText();
    const mark = holds ? this.#output.paint("green", "✔") : this.#output.paint("red", "✘");
    this.#output.printText(`  ${mark} ${name}\n    ${this.#output.paint("dim", found)}`);
  }

  gap(): void {
    this.endOfText();
    if (!this.#output.json) this.#output.print("");
  }

  end(text: string, facts: object): void {
    this.endOfText();
    if (this.#output.json) this.#output.document({ kind: "end", elapsedMs: this.elapsedMs, ...facts });
    else this.#output.printText(`\n${text}`);
  }

  #word(word: string): void {
    const column = this.#column ?? 0;
    const isFull = this.#spaceIsDue && column + 1 + word.length > this.#textWidth;
    this.#output.write(`${isFull ? `\n${" ".repeat(indent)}` : this.#spaceIsDue ? " " : ""}${word}`);
    this.#column = (isFull ? 0 : column + (this.#spaceIsDue ? 1 : 0)) + word.length;
    this.#spaceIsDue = false;
  }

  #line({ label, text, style }: { readonly label: string; readonly text: string; readonly style: Style }): void {
    this.endOfText();
    const lines = wrap(text, this.#textWidth).map((line) =>
      style === "green" ? this.#output.paint("dim", line) : line,
    );
    this.#output.printText(`${this.#head(label, style)}${lines.join(`\n${" ".repeat(indent)}`)}`);
  }

  #head(label: string, style: Style): string {
    const time = inSeconds(this.elapsedMs, 2).padStart(7);
    return `  ${this.#output.paint("dim", time)}  ${this.#output.paint(style, label.padEnd(labelWidth))}  `;
  }
}
