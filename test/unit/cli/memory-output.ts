import { Output } from "../../../cli/output.ts";

export interface MemoryOutput {
  readonly output: Output;
  readonly stdout: () => string;
  readonly stderr: () => string;
}

export interface MemoryOutputOptions {
  readonly json?: boolean;
  readonly isTerminal?: boolean;
  readonly columns?: number;
  readonly env?: NodeJS.ProcessEnv;
}

/** An output that records its text. */
export function memoryOutput({
  json = false,
  isTerminal = false,
  columns = 80,
  env = {},
}: MemoryOutputOptions = {}): MemoryOutput {
  const stdout: string[] = [];
  const stderr: string[] = [];
  const output = new Output({
    stdout: { write: (text) => stdout.push(text), isTTY: isTerminal, columns },
    stderr: { write: (text) => stderr.push(text), isTTY: isTerminal, columns },
    env,
    json,
  });
  return { output, stdout: () => stdout.join(""), stderr: () => stderr.join("") };
}
