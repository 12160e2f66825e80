import { isTextDelta, isToolExecutionEnd, isToolExecutionStart, type PiEvent } from "../client/pi-events.ts";
import { stripVTControlCharacters } from "./node-builtins.ts";
import type { Output, Style } from "./output.ts";
import { oneLine, printable, shorten } from "./text.ts";

/**
 * Prints a run live: the assistant's text to stdout; a line for each tool call, and what extensions say, to stderr.
 */
export class RunPrinter {
  readonly #output: Output;
  /** The last text of each extension's status, because extensions repeat them. */
  readonly #statuses = new Map<string, string>();
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
    } else if (event.type === "extension_ui_request") {
      this.#extension(event);
    }
  }

  /** Later output begins on a new line. */
  endLine(): void {
    if (this.#lineIsOpen) this.#output.write("\n");
    this.#lineIsOpen = false;
  }

  #extension(event: PiEvent): void {
    const said = saidByExtension(event);
    if (said === undefined || (said.key !== undefined && this.#statuses.get(said.key) === said.text)) return;
    if (said.key !== undefined) {
      if (this.#statuses.size >= maxStatuses) this.#statuses.clear();
      this.#statuses.set(said.key, said.text);
    }
    if (said.text === "") return;
    this.endLine();
    const lead = said.key === undefined ? "" : `${oneLine(said.key)}: `;
    for (const line of said.text.slice(0, maxSaidCharacters).split("\n")) {
      this.#output.aside(this.#output.paintAside(said.style, shorten(`${lead}${printable(line)}`, maxLineCharacters)));
    }
  }

  #write(text: string): void {
    if (text === "") return;
    this.#output.write(text);
    this.#lineIsOpen = !text.endsWith("\n");
  }
}

const maxStatuses = 100;
const maxSaidCharacters = 20_000;
const maxLineCharacters = 2_000;

/** What an extension shows to the user without a question. */
export interface Said {
  /** The status that changed; undefined: a notification. */
  readonly key?: string;
  /** Empty if a status was removed. */
  readonly text: string;
  readonly style: Style;
}

const notifyStyles: Readonly<Record<string, Style>> = { warning: "yellow", error: "red" };

/** Returns undefined for an event by which an extension shows no text (docs/rpc-extension-ui.md of pi). */
export function saidByExtension(event: PiEvent): Said | undefined {
  const { method, message, notifyType, statusKey, statusText = "" } = event;
  const plain = (text: string): string => stripVTControlCharacters(text).trimEnd();
  if (method === "notify" && typeof message === "string") {
    return { text: plain(message), style: notifyStyles[String(notifyType)] ?? "magenta" };
  }
  if (method === "setStatus" && typeof statusKey === "string" && typeof statusText === "string") {
    return { key: statusKey, text: plain(statusText), style: "dim" };
  }
  return undefined;
}

/** A tool call in one line: its command, path or other main argument. */
export function toolLine(name: string, args: unknown): string {
  return shorten(`[${oneLine(name)}] ${oneLine(gist(args))}`, 140).trimEnd();
}

function gist(args: unknown): string {
  if (typeof args !== "object" || args === null) return "";
  const named = args as Readonly<Record<string, unknown>>;
  for (const key of ["command", "path", "file_path", "pattern", "query", "question", "url"]) {
    if (typeof named[key] === "string") return named[key];
  }
  return Object.keys(named).length === 0 ? "" : JSON.stringify(args);
}
