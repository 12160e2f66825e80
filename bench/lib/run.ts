import { spawn } from "node:child_process";

export interface RunOptions {
  /** Target of stdout: `output`, nothing, or this process's stderr. */
  readonly stdout: "pipe" | "ignore" | 2;
  readonly env?: NodeJS.ProcessEnv;
  /** It is killed after this time. Default: never. */
  readonly killAfterMs?: number;
}

/** Runs a program to its end, and forwards signals to it. stderr is this process's. Never throws. */
export async function run(
  file: string,
  args: readonly string[],
  { stdout, env = process.env, killAfterMs }: RunOptions,
): Promise<{ code: number; output: string }> {
  const child = spawn(file, args, {
    env,
    stdio: ["ignore", stdout, "inherit"],
    ...(killAfterMs !== undefined && { timeout: killAfterMs, killSignal: "SIGKILL" as const }),
  });
  const pass = (signal: NodeJS.Signals): void => void child.kill(signal);
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, pass);
  const chunks: Buffer[] = [];
  child.stdout?.on("data", (chunk: Buffer) => chunks.push(chunk));
  const { promise, resolve } = Promise.withResolvers<number>();
  child.once("error", () => resolve(127));
  child.once("close", (code) => resolve(code ?? 128));
  const code = await promise;
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.off(signal, pass);
  return { code, output: Buffer.concat(chunks).toString("utf8") };
}
