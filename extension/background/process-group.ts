import { type ChildProcess, spawn } from "node:child_process";
import { StringDecoder } from "node:string_decoder";
import { messageOf } from "../pi-types.ts";
import { atExit } from "./at-exit.ts";
import { CappedOutput, type CappedText, OutputDirectory } from "./output.ts";

export interface ProcessGroupOptions {
  readonly file: string;
  readonly args?: readonly string[];
  /** Default: pi's own. */
  readonly cwd?: string;
  /** Default: pi's own. */
  readonly env?: NodeJS.ProcessEnv;
  /** Ends the group: SIGTERM, and SIGKILL after `graceMs`. The promise then rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /** Called with each piece of stdout and stderr, in order of arrival. */
  readonly onOutput?: (piece: string) => void;
  /** From SIGTERM to SIGKILL. Default: 5,000. */
  readonly graceMs?: number;
  /** Length of the kept output; longer output is stored in full in a file. Default: 50,000 UTF-16 units. */
  readonly maxOutputLength?: number;
}

/** How a process has ended. */
export interface ProcessEnd {
  /** `null` when a signal has ended it. */
  readonly exitCode: number | null;
  readonly signal: NodeJS.Signals | null;
  /** stdout and stderr together. */
  readonly output: CappedText;
}

const defaultGraceMs = 5_000;
const defaultMaxOutputLength = 50_000;
/** Time limit for a descendant in another group that keeps the pipes open. */
const openPipesMs = 1_000;

const directory = new OutputDirectory();
let processes = 0;

/**
 * Runs a program as the leader of a process group of its own, without stdin. When the leader ends, is aborted, or pi
 * ends, the rest of the group ends too. Rejects when the program cannot be started.
 */
export async function runProcessGroup(options: ProcessGroupOptions): Promise<ProcessEnd> {
  const { file, args = [], cwd, env, signal, onOutput, graceMs = defaultGraceMs } = options;
  signal?.throwIfAborted();
  processes += 1;
  const output = new CappedOutput({
    maxLength: options.maxOutputLength ?? defaultMaxOutputLength,
    directory,
    name: `process-${processes}.txt`,
  });
  const child = spawn(file, args, {
    ...(cwd === undefined ? {} : { cwd }),
    ...(env === undefined ? {} : { env }),
    stdio: ["ignore", "pipe", "pipe"],
    detached: true,
  });
  const { pid } = child;
  const { promise, resolve, reject } = Promise.withResolvers<ProcessEnd>();
  let grace: NodeJS.Timeout | undefined;
  const abort = (): void => {
    if (pid === undefined) return;
    killGroup(pid, "SIGTERM");
    grace = setTimeout(() => killGroup(pid, "SIGKILL"), graceMs).unref();
  };
  const take = (piece: string): void => {
    if (piece === "") return;
    try {
      output.add(piece);
      onOutput?.(piece);
    } catch (thrown) {
      // The disk is full, or the caller's callback threw. End the process instead of leaving it running.
      reject(thrown);
      abort();
    }
  };
  // pi may exit before the grace period ends.
  const forget = pid === undefined ? undefined : atExit(() => killGroup(pid, "SIGKILL"));
  signal?.addEventListener("abort", abort, { once: true });
  readAll(child, take);
  child.once("error", (error) => reject(new Error(`${file} could not be started: ${messageOf(error)}`)));
  child.once("exit", () => {
    clearTimeout(grace);
    if (pid !== undefined) killGroup(pid, "SIGKILL");
    forget?.();
    setTimeout(() => destroyPipes(child), openPipesMs).unref();
  });
  child.once("close", (exitCode, endedBy) => resolve({ exitCode, signal: endedBy, output: output.text }));
  try {
    const end = await promise;
    signal?.throwIfAborted();
    return end;
  } finally {
    signal?.removeEventListener("abort", abort);
    output.close();
  }
}

function readAll(child: ChildProcess, take: (piece: string) => void): void {
  for (const stream of [child.stdout, child.stderr]) {
    const decoder = new StringDecoder("utf8");
    stream?.on("data", (bytes: Buffer) => take(decoder.write(bytes)));
    stream?.on("end", () => take(decoder.end()));
    stream?.on("error", () => {});
  }
}

function destroyPipes(child: ChildProcess): void {
  child.stdout?.destroy();
  child.stderr?.destroy();
}

/** Sends a signal to a group, which may already have ended. */
function killGroup(leader: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-leader, signal);
  } catch {
    // The group has ended.
  }
}
