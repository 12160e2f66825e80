import { isTextDelta, isToolExecutionEnd, isToolExecutionStart, type PiEvent } from "../client/pi-events.ts";
import type { Output } from "./output.ts";
import { oneLine, printable, shorten } from "./text.ts";

/** Prints a run live: the assistant's text to stdout, a line for each tool call to stderr. */
export class RunPrinter {
  readonly #output: Output;
  #lineIsOpen = false;

  constructor(output: Output) {
    this.#output = output;
  }

  show(event: PiEvent): void {
    if (isTextDelta(event)) {
      const { delta } = event.assistantMessageEvent;
      this.#write(this.#output.isTerminal ? printable(delta) : delta);
    } else if (event.type === "message_end") {
      this.endLine();
    } else if (isToolExecutionStart(event)) {
      this.endLine();
      this.#output.aside(this.#output.paintAside("dim", toolLine(event.toolName, event.args)));
    } else if (isToolExecutionEnd(event) && event.isError) {
      this.endLine();
      this.#output.aside(this.#output.paintAside("yellow", `[${oneLine(event.toolName)}] failed`));
    }
  }

  /** Later output begins on a new line. */
  endLine(): void {
    if (this.#lineIsOpen) this.#output.write("\n");
    this.#lineIsOpen = false;
  }

  #write(text: string): void {
    if (text === "") return;
    this.#output.write(text);
    this.#lineIsOpen = !text.endsWith("\n");
  }
}

/** A tool call in one line: its command, path or other main argument. */
export function toolLine(name: string, args: unknown): string {
  return shorten(`[${oneLine(name)}] ${oneLine(gist(args))}`, 140).trimEnd();
}

function gist(args: unknown): string {
  if (typeof args !== "object" || args === null) return "";
  const named = args as Readonly<Record<string, unknown>>;
  for (const key of ["command", "path", "file_path", "pattern", "query", "url"]) {
    if (typeof named[key] === "string") return named[key];
  }
  return Object.keys(named).length === 0 ? "" : JSON.stringify(args);
}
