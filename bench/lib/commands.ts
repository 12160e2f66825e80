import { spawn } from "node:child_process";
import { performance } from "node:perf_hooks";
import { within } from "./deadline.ts";

export interface Ran {
  /** Until its end, from its start. */
  readonly ms: number;
  /** Until the first byte of its stdout. */
  readonly firstByteMs: number;
  readonly output: string;
}

/** Runs a program of Node to its end. Rejects if it fails. */
export async function runNode(args: readonly string[], env: NodeJS.ProcessEnv, cwd = "/"): Promise<Ran> {
  const startedAt = performance.now();
  const child = spawn(process.execPath, args, { env, cwd, stdio: ["ignore", "pipe", "inherit"] });
  let firstByteMs = Number.NaN;
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    if (output === "") firstByteMs = performance.now() - startedAt;
    output += text;
  });
  const exited = Promise.withResolvers<number | null>();
  const closed = Promise.withResolvers<void>();
  child.once("exit", exited.resolve).once("error", exited.reject);
  child.once("close", () => closed.resolve());
  const what = args.join(" ");
  try {
    const code = await within(60, `the end of ${what}`, exited.promise);
    const ms = performance.now() - startedAt;
    await within(10, `the output of ${what}`, closed.promise);
    if (code !== 0) throw new Error(`${what} ended with ${code}.`);
    return { ms, firstByteMs, output };
  } finally {
    child.kill("SIGKILL");
  }
}
