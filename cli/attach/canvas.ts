import { duration, inSeconds } from "../format.ts";
import { stripVTControlCharacters } from "../node-builtins.ts";
import type { Output, Style } from "../output.ts";
import { toolLine } from "../run-printer.ts";
import { oneLine, printable, shorten } from "../text.ts";

export interface ToolCall {
  readonly id: string;
  readonly name: string;
  readonly args: unknown;
}

export interface ToolResult {
  readonly id: string;
  readonly name: string;
  readonly text: string;
  /** The changes of an edit, a line for each changed line. */
  readonly diff?: string | undefined;
  /** Descriptions of the result's images. */
  readonly images: readonly string[];
  readonly isError: boolean;
  readonly tookMs: number | undefined;
}

/** The mark of users' messages; a client's name follows it, except for this user's. */
export const userMark = "❯";

export interface Said {
  /** Who or what speaks, in one or a few characters. */
  readonly mark: string;
  readonly text: string;
  /** Descriptions of the message's images. */
  readonly images: readonly string[];
}

/** Where a session is shown. It accepts text from any source. */
export interface Canvas {
  /** Appends to the text or thinking that streams; `restart` replaces it. */
  stream(text: string, kind: "text" | "thinking", restart?: boolean): void;
  /** The streamed text is complete: later output is separate. */
  endStream(): void;
  /** Prints separate lines. */
  line(text: string, style?: Style): void;
  said(message: Said): void;
  toolStarted(call: ToolCall): void;
  /** Shows output so far, which replaces what was shown, or with `append` is added to it. */
  toolOutput(id: string, text: string, append: boolean): void;
  toolEnded(result: ToolResult): void;
}

/** For a pipe or a terminal without input: writes plain lines. */
export class PlainCanvas implements Canvas {
  readonly #output: Output;
  #isOpen = false;

  constructor(output: Output) {
    this.#output = output;
  }

  stream(text: string, kind: "text" | "thinking", restart = false): void {
    if (restart) this.endStream();
    if (text === "") return;
    this.#output.write(kind === "text" ? printable(text) : this.#output.paint("dim", printable(text)));
    this.#isOpen = !text.endsWith("\n");
  }

  line(text: string, style?: Style): void {
    this.endStream();
    this.#output.printText(style === undefined ? text : this.#output.paint(style, text));
  }

  said({ mark, text, images }: Said): void {
    const [first = "", ...more] = [...printable(text).trimEnd().split("\n"), ...images];
    this.line([`${mark} ${first}`, ...more.map((line) => `  ${line}`)].join("\n"), "cyan");
  }

  toolStarted({ name, args }: ToolCall): void {
    this.line(toolLine(name, args), "bold");
  }

  toolOutput(): void {}

  toolEnded(result: ToolResult): void {
    this.line(` ${outcomeOf(result)}`, result.isError ? "red" : "dim");
  }

  endStream(): void {
    if (this.#isOpen) this.#output.write("\n");
    this.#isOpen = false;
  }
}

/** The result of a tool call, in one line. */
function outcomeOf({ text, images, isError, tookMs }: ToolResult): string {
  const lines = [...stripVTControlCharacters(text.slice(0, 100_000)).split("\n"), ...images].filter(
    (line) => line.trim() !== "",
  );
  const first = shorten(oneLine(lines[0] ?? ""), 100);
  const more = lines.length > 1 ? ` … ${lines.length} lines` : "";
  const took = tookMs === undefined ? "" : ` (${elapsed(tookMs)})`;
  return `${isError ? "✘" : "✔"} ${first === "" ? (isError ? "failed" : "done") : first}${more}${took}`;
}

export function elapsed(ms: number): string {
  return ms < 60_000 ? inSeconds(ms) : duration(ms);
}
