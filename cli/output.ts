import { CommandError, type ErrorReport, reportOf, UsageError } from "./errors.ts";
import { styleText } from "./node-builtins.ts";
import { oneLine, printable, printableJson } from "./text.ts";

/**
 * Replaces ESC in the result of {@link Output.paint} until it is written. The random number makes it unpredictable, so
 * that all other control characters can be removed from a line that has both. Undefined until something is painted,
 * because the module for random numbers takes long to load.
 */
let escapeMark: string | undefined;

export type Style = "bold" | "dim" | "red" | "green" | "yellow" | "cyan" | "magenta";

/** The part of a stream that the command line uses. */
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
 * Prints results to stdout and everything else to stderr. Printed lines and texts cannot control the terminal: control
 * characters are removed, and a line stays one line.
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

  /** Whether stdout is a terminal. */
  get isTerminal(): boolean {
    return this.#stdout.isTTY === true;
  }

  /** Whether stderr is a terminal. */
  get isTerminalAside(): boolean {
    return this.#stderr.isTTY === true;
  }

  /** The width of the terminal; undefined in a pipe, where nothing is truncated. */
  get columns(): number | undefined {
    return this.isTerminal ? this.#stdout.columns : undefined;
  }

  /** Writes a text unchanged, which the caller made safe or which a program reads. */
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

  /** Prints a value for programs, on one line, that is safe on a terminal, too. */
  document(value: unknown): void {
    this.#stdout.write(`${printableJson(JSON.stringify(value))}\n`);
  }

  /** Prints a line to stderr. */
  aside(line: string): void {
    this.#stderr.write(`${withEscapes(singleLine(line))}\n`);
  }

  /** Prints information for the caller that is not an error. */
  note(name: string, message: string): void {
    this.aside(this.json ? printableJson(JSON.stringify({ note: { name, message } })) : `pi-rpcd: ${oneLine(message)}`);
  }

  /** `command`: the command that failed, whose options the message then names. */
  error(error: unknown, command?: string): void {
    const report = reportOf(error, command);
    if (this.json) {
      this.aside(printableJson(JSON.stringify({ error: report })));
      return;
    }
    this.aside(`${this.paintAside("red", "pi-rpcd:")} ${sentence(report)}`);
    if (error instanceof CommandError) for (const line of error.lines) this.aside(`  ${line}`);
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
    escapeMark ??= `\u{fdd0}${process.getBuiltinModule("node:crypto").randomBytes(8).toString("hex")}`;
    return styleText(style, printable(text), { validateStream: false }).replaceAll("\u001b", escapeMark);
  }
}

function singleLine(text: string): string {
  return printable(text).replaceAll(/\s*\n\s*/g, " | ");
}

function withEscapes(text: string): string {
  return escapeMark === undefined ? text : text.replaceAll(escapeMark, "\u001b");
}

/** https://no-color.org: any value except the empty one. */
export function allowsColour(env: NodeJS.ProcessEnv): boolean {
  return (env["NO_COLOR"] ?? "") === "" && env["TERM"] !== "dumb";
}

function sentence({ name, message }: ErrorReport): string {
  const text = oneLine(message);
  return name === "usage" || name === "interrupted" ? text : `${text} (${name})`;
}
