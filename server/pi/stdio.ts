import { type ChildProcess, spawn } from "node:child_process";
import type { Readable, Writable } from "node:stream";
import type { SpawnPlan } from "./spawn-options.ts";

/** How a process ended. */
export interface ProcessExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** A started process. Only this file knows how a child's stdio is connected. */
export interface ChildStdio {
  readonly pid: number;
  readonly stdin: Writable;
  readonly stdout: Readable;
  readonly stderr: Readable;
  /** Resolves when the process has ended and its output was read. */
  readonly exited: Promise<ProcessExit>;
}

/** How long the pipes of an ended process may stay open: one of its descendants can hold them. */
const pipesCloseWithinMs = 1_000;

/** Starts the process. Rejects if the system cannot (missing file, no more processes or descriptors). */
export async function startChild(plan: Omit<SpawnPlan, "startEnvironment">): Promise<ChildStdio> {
  const child = spawn(plan.file, plan.args, {
    cwd: plan.cwd,
    env: plan.env,
    stdio: ["pipe", "pipe", "pipe"],
    detached: true,
    shell: false,
  });
  await started(child);
  return {
    pid: child.pid as number,
    stdin: child.stdin,
    stdout: child.stdout,
    stderr: child.stderr,
    exited: end(child),
  };
}

function started(child: ChildProcess): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  child.once("error", reject);
  child.once("spawn", () => {
    child.off("error", reject);
    // A later error (a signal that could not be sent) does not mean that it ended.
    child.on("error", () => {});
    resolve();
  });
  return promise;
}

function end(child: ChildProcess): Promise<ProcessExit> {
  const { promise, resolve } = Promise.withResolvers<ProcessExit>();
  child.once("exit", (code, signal) => {
    const exit = { code, signal };
    const timer = setTimeout(() => {
      child.stdout?.destroy();
      child.stderr?.destroy();
      resolve(exit);
    }, pipesCloseWithinMs);
    child.once("close", () => {
      clearTimeout(timer);
      resolve(exit);
    });
  });
  return promise;
}
