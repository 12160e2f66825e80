import { writeSync } from "node:fs";

type Style = "bold" | "dim" | "green" | "yellow" | "red" | "cyan";

const codes: Readonly<Record<Style, readonly [number, number]>> = {
  bold: [1, 22],
  dim: [2, 22],
  green: [32, 39],
  yellow: [33, 39],
  red: [31, 39],
  cyan: [36, 39],
};

/** Where a command writes. Colours follow NO_COLOR and what is a terminal. */
export interface Output {
  readonly isTerminal: boolean;
  /** Text as it is. */
  write(text: string): void;
  line(text?: string): void;
  /** One JSON value on a line of its own. */
  json(value: unknown): void;
  /** A remark for people, on stderr. */
  note(text: string): void;
  style(style: Style, text: string): string;
}

export function createOutput(env: NodeJS.ProcessEnv = process.env): Output {
  const isTerminal = process.stdout.isTTY === true;
  const colours = isTerminal && (env["NO_COLOR"] ?? "") === "" && env["TERM"] !== "dumb";
  const write = (text: string): void => writeAll(1, text);
  return {
    isTerminal,
    write,
    line: (text = "") => write(`${text}\n`),
    json: (value) => write(`${JSON.stringify(value)}\n`),
    note: (text) => writeAll(2, `pi-rpcd: ${text}\n`),
    style: (style, text) => (colours ? `\u001b[${codes[style][0]}m${text}\u001b[${codes[style][1]}m` : text),
  };
}

/** All of it before it returns, so that nothing is cut off when the process exits. A reader that has gone ends the command. */
function writeAll(descriptor: number, text: string): void {
  let rest = Buffer.from(text);
  while (rest.length > 0) {
    try {
      rest = rest.subarray(writeSync(descriptor, rest));
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === "EPIPE") process.exit(0);
      if (code !== "EAGAIN") throw error;
      // A pipe that does not block and is full: let its reader read.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5);
    }
  }
}

/** Columns, as wide as they need to be. */
export function columns(rows: readonly (readonly string[])[]): string[] {
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0))) ?? [];
  return rows.map((row) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join("  ").trimEnd());
}
