import { type ChildProcess, spawn } from "node:child_process";
import type { Socket } from "node:net";
import type { Readable, Writable } from "node:stream";
import type { KeeperAnswer } from "../../protocol/keeper.ts";
import { TextRing } from "../lib/text-ring.ts";
import type { SpawnPlan } from "./spawn-options.ts";

/** How a process ended. */
export interface ProcessExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** It ended without a report, and its parent was not this daemon. */
  readonly unknown?: true;
}

/** The connection to the keeper inside a process, which holds its output until it is acknowledged. */
export interface KeeperLink {
  /** Of the first connection of this daemon, or from the file that the ended process left. */
  readonly answer: KeeperAnswer;
  /** Offset of the first byte of `stdout`: later than the one asked for if the keeper has no bytes from there. */
  readonly from: number;
  /** The bytes before `offset` are no longer needed. */
  ack(offset: number): void;
  /** The next line that is written to `stdin` is the prompt `id`, which has no blanks and no line ends. */
  mark(id: string): void;
  /** The answer of the prompt `id` is stored. */
  forget(id: string): void;
  /** Something was told that cannot be written down. */
  inexact(): void;
  /** This daemon ends, and its children with it: without a daemon the process ends at once. */
  mortal(): void;
}

export interface StderrPart {
  readonly bytes: Buffer;
  /** How many bytes it wrote in all: `bytes` are the last of them. */
  readonly end: number;
}

/** A started process. */
export interface ChildStdio {
  readonly pid: number;
  readonly stdin: Writable;
  readonly stdout: Readable;
  /** The end of what it wrote to stderr. */
  readonly stderrTail: string;
  /** The newest of what it wrote to stderr after the first `from` bytes, at most `maxBytes`. */
  stderrAfter(from: number, maxBytes: number): StderrPart;
  /** Whether the process has ended. Its output may be unread, and its pid may belong to another process. */
  readonly hasEnded: boolean;
  /** Resolves when the process has ended and its output was read. */
  readonly exited: Promise<ProcessExit>;
  /** Present if it survives the daemon. */
  readonly keeper?: KeeperLink;
}

/** How long the pipes of an ended process may stay open: one of its descendants can hold them. */
const pipesCloseWithinMs = 1_000;

/** More than a pipe holds: after so many bytes, those of the ended process itself were read. */
const maxPipeBytes = 1024 * 1024;

/**
 * Starts the process with pipes. `maxStderrBytes`: how much of its stderr is kept. Rejects if the system cannot
 * (missing file, no more processes or descriptors).
 */
export async function startChild(
  plan: Omit<SpawnPlan, "startEnvironment">,
  maxStderrBytes: number,
): Promise<ChildStdio> {
  const child = spawn(plan.file, plan.args, {
    cwd: plan.cwd,
    env: plan.env,
    stdio: ["pipe", "pipe", "pipe"],
    detached: true,
    shell: false,
  });
  await started(child);
  const tail = new TextRing(maxStderrBytes);
  child.stderr.on("data", (chunk: Buffer) => tail.push(chunk));
  child.stderr.on("error", () => {});
  return {
    pid: child.pid as number,
    stdin: child.stdin,
    stdout: child.stdout,
    get stderrTail() {
      return tail.toString();
    },
    stderrAfter: (from, maxBytes) => ({ bytes: tail.after(from, maxBytes), end: tail.size }),
    get hasEnded() {
      return child.exitCode !== null || child.signalCode !== null;
    },
    exited: end(child),
  };
}

export function started(child: ChildProcess): Promise<void> {
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
    const stdout = child.stdout as Socket;
    const readBefore = stdout.bytesRead;
    let wasHeld = false;
    stdout.on("pause", () => {
      wasHeld = true;
    });
    const look = (): void => {
      // Its reader is held back, or was a moment ago: nothing that the process wrote may be lost for that.
      if ((wasHeld || stdout.isPaused()) && stdout.bytesRead - readBefore < maxPipeBytes) {
        wasHeld = stdout.isPaused();
        timer = setTimeout(look, pipesCloseWithinMs);
        return;
      }
      stdout.destroy();
      child.stderr?.destroy();
      resolve(exit);
    };
    let timer = setTimeout(look, pipesCloseWithinMs);
    child.once("close", () => {
      clearTimeout(timer);
      resolve(exit);
    });
  });
  return promise;
}
