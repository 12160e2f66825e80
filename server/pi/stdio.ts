import { type ChildProcess, spawn } from "node:child_process";
import type { Readable, Writable } from "node:stream";
import type { SpawnPlan } from "./spawn-options.ts";

/** How a process ended. */
export interface ProcessExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** A started process. This file alone knows what a child's stdio is made of. */
export interface ChildStdio {
  readonly pid: number;
  readonly stdin: Writable;
  readonly stdout: Readable;
  readonly stderr: Readable;
  /** Resolves when the process has ended and what it wrote was read. */
  readonly exited: Promise<ProcessExit>;
}

/** How long the pipes of an ended process may stay open: a process that it left behind can hold them. */
const pipesCloseWithinMs = 1_000;

/** Starts the process. Rejects when the system could not (no such file, no more processes or descriptors). */
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
    // A later error (a signal that could not be sent) is no end.
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
