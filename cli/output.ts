import { randomBytes } from "node:crypto";
import { type ErrorReport, reportOf, UsageError } from "./errors.ts";
import { styleText } from "./node-builtins.ts";
import { oneLine, printable, printableJson } from "./text.ts";

/**
 * Stands for ESC in what {@link Output.paint} makes, until it is written. The number makes it unknown to every text from elsewhere,
 * so that all other control characters can be removed from a line that holds both.
 */
const escapeMark = `\u{fdd0}${randomBytes(8).toString("hex")}`;

export type Style = "bold" | "dim" | "red" | "green" | "yellow" | "cyan" | "magenta";

/** What of a stream the command line uses. */
export interface Sink {
  write(text: string): unknown;
  readonly isTTY?: boolean;
  readonly columns?: number;
}

export interface OutputOptions {
  readonly stdout: Sink;
  readonly stderr: Sink;
  readonly env: NodeJS.ProcessEnv;
  /** Whether the caller asked for `--json`. */
  readonly json: boolean;
}

/**
 * Where a command prints: results to stdout, everything else to stderr. What is printed as a line or a text can only add to a
 * terminal, whatever it holds: control characters are removed, and a line stays one line.
 */
export class Output {
  readonly json: boolean;
  readonly #stdout: Sink;
  readonly #stderr: Sink;
  readonly #env: NodeJS.ProcessEnv;

  constructor({ stdout, stderr, env, json }: OutputOptions) {
    this.json = json;
    this.#stdout = stdout;
    this.#stderr = stderr;
    this.#env = env;
  }

  /** Whether a person reads stdout. */
  get isTerminal(): boolean {
    return this.#stdout.isTTY === true;
  }

  /** Whether a person reads what stands beside the result. */
  get isTerminalAside(): boolean {
    return this.#stderr.isTTY === true;
  }

  /** The width of the terminal; undefined in a pipe, where nothing is to be cut. */
  get columns(): number | undefined {
    return this.isTerminal ? this.#stdout.columns : undefined;
  }

  /** Writes as it is what the caller has made safe, or what a program reads. */
  write(text: string): void {
    this.#stdout.write(withEscapes(text));
  }

  print(line: string): void {
    this.#stdout.write(`${withEscapes(singleLine(line))}\n`);
  }

  /** A text that may have several lines. */
  printText(text: string): void {
    this.#stdout.write(`${withEscapes(printable(text))}\n`);
  }

  /** A value for programs, on one line, which a terminal can be shown too. */
  document(value: unknown): void {
    this.#stdout.write(`${printableJson(JSON.stringify(value))}\n`);
  }

  /** A line beside the result. */
  aside(line: string): void {
    this.#stderr.write(`${withEscapes(singleLine(line))}\n`);
  }

  /** Something the caller should know that is no error. */
  note(name: string, message: string): void {
    this.aside(this.json ? printableJson(JSON.stringify({ note: { name, message } })) : `pi-rpcd: ${oneLine(message)}`);
  }

  error(error: unknown): void {
    const report = reportOf(error);
    if (this.json) {
      this.aside(printableJson(JSON.stringify({ error: report })));
      return;
    }
    this.aside(`${this.paintAside("red", "pi-rpcd:")} ${sentence(report)}`);
    if (error instanceof UsageError) {
      this.aside(`See: pi-rpcd ${error.command === undefined ? "" : `${error.command} `}--help`);
    }
  }

  /** Colours text for stdout. */
  paint(style: Style, text: string): string {
    return this.#paint(this.#stdout, style, text);
  }

  /** Colours text for stderr. */
  paintAside(style: Style, text: string): string {
    return this.#paint(this.#stderr, style, text);
  }

  #paint(sink: Sink, style: Style, text: string): string {
    if (sink.isTTY !== true || !allowsColour(this.#env)) return text;
    return styleText(style, printable(text), { validateStream: false }).replaceAll("\u001b", escapeMark);
  }
}

function singleLine(text: string): string {
  return printable(text).replaceAll(/\s*\n\s*/g, " | ");
}

function withEscapes(text: string): string {
  return text.replaceAll(escapeMark, "\u001b");
}

/** https://no-color.org: any value but the empty one. */
function allowsColour(env: NodeJS.ProcessEnv): boolean {
  return (env["NO_COLOR"] ?? "") === "" && env["TERM"] !== "dumb";
}

function sentence({ name, message }: ErrorReport): string {
  const text = oneLine(message);
  return name === "usage" || name === "interrupted" ? text : `${text} (${name})`;
}
