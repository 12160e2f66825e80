import { spawn } from "node:child_process";
import { join } from "node:path";

export const root = join(import.meta.dirname, "..", "..");

/** The program of an installed package, by the name of its bin. */
export function bin(name: string): string {
  return join(root, "node_modules", ".bin", name);
}

export interface CommandOutcome {
  /** 0 for success; 127 if it could not be started, 128 and more if a signal ended it. */
  readonly code: number;
  /** stdout and stderr, interleaved. */
  readonly output: string;
}

export interface CommandOptions {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** After this the command is killed. */
  readonly timeoutMs?: number;
}

/** Runs a command without stdin and collects what it prints. Never throws. The `node` it finds on PATH is this one. */
export function run(command: string, args: readonly string[], options: CommandOptions = {}): Promise<CommandOutcome> {
  const { cwd = root, env = {}, timeoutMs = 600_000 } = options;
  const { promise, resolve } = Promise.withResolvers<CommandOutcome>();
  const child = spawn(command, args, {
    cwd,
    env: {
      ...process.env,
      NO_COLOR: "1",
      PATH: `${join(process.execPath, "..")}:${process.env["PATH"] ?? ""}`,
      ...env,
    },
    stdio: ["ignore", "pipe", "pipe"],
    timeout: timeoutMs,
    killSignal: "SIGKILL",
  });
  const chunks: Buffer[] = [];
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk: Buffer) => chunks.push(chunk));
  const output = (): string => Buffer.concat(chunks).toString("utf8");
  child.on("error", (error) => resolve({ code: 127, output: `${output()}${command}: ${error.message}\n` }));
  child.on("close", (code, signal) => {
    const ending = signal === null ? "" : `${command} was ended by ${signal}\n`;
    resolve({ code: code ?? 128, output: output() + ending });
  });
  return promise;
}
