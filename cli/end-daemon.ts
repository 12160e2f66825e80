import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { hasOpenFilesIn } from "../client/discovery.ts";
import { ProtocolMismatchError } from "../client/local-errors.ts";
import { DAEMON_FILE_NAME } from "../protocol/daemon-file.ts";
import { type DaemonState, daemonState } from "./daemon-state.ts";
import { CommandError } from "./errors.ts";
import { exitCodes } from "./exit-codes.ts";
import { runs } from "./process-facts.ts";

/** Node does not report the end of a process that is not its child, so the process is polled. */
const lookEveryMs = 25;

export type Ended =
  | { readonly kind: "ended"; readonly pid: number; readonly by: "SIGTERM" | "SIGUSR2" }
  | { readonly kind: "none"; readonly found: Exclude<DaemonState, { kind: "running" }> };

/**
 * Ends the daemon of a state directory gracefully, and resolves when its process has ended. `restart`: another one
 * follows, to which it leaves its children if it can. Throws `foreign_process` if the process is not proved to be the
 * daemon, `deadline_exceeded` if it has not ended in time.
 */
export async function endDaemon(
  stateDir: string,
  timeoutMs: number,
  signal: AbortSignal,
  why: "stop" | "restart" = "stop",
): Promise<Ended> {
  const running = await runningDaemon(stateDir, signal);
  if (!("pid" in running)) return { kind: "none", found: running };
  const { pid: found, canLeaveChildren } = running;
  if (hasOpenFilesIn(found, stateDir) === false) {
    throw new CommandError(
      "foreign_process",
      `The daemon answers, but process ${found} on this machine is another program: the daemon probably runs in a container. Stop it there.`,
      { data: { pid: found } },
    );
  }
  const by = why === "restart" && canLeaveChildren ? "SIGUSR2" : "SIGTERM";
  process.kill(found, by);
  const deadline = AbortSignal.timeout(timeoutMs);
  while (runs(found)) {
    if (deadline.aborted) {
      const message = `Process ${found} did not end within ${timeoutMs / 1_000} s; it continues to shut down.`;
      throw new CommandError("deadline_exceeded", message, { exitCode: exitCodes.deadline, data: { pid: found } });
    }
    await pause(lookEveryMs);
    signal.throwIfAborted();
  }
  return { kind: "ended", pid: found, by };
}

async function runningDaemon(
  stateDir: string,
  signal: AbortSignal,
): Promise<{ readonly pid: number; readonly canLeaveChildren: boolean } | Exclude<DaemonState, { kind: "running" }>> {
  try {
    const found = await daemonState(stateDir, signal);
    if (found.kind !== "running") return found;
    // SIGUSR2 would kill a daemon that does not know it.
    return { pid: found.file.pid, canLeaveChildren: found.info.liveRestore?.available === true };
  } catch (error) {
    // A daemon of another version cannot be asked for its process, but its open files prove it.
    const pid = error instanceof ProtocolMismatchError ? provedPid(stateDir) : undefined;
    if (pid === undefined) throw error;
    return { pid, canLeaveChildren: false };
  }
}

function provedPid(stateDir: string): number | undefined {
  const { pid } = JSON.parse(readFileSync(join(stateDir, DAEMON_FILE_NAME), "utf8")) as { readonly pid?: unknown };
  return typeof pid === "number" && hasOpenFilesIn(pid, stateDir) === true ? pid : undefined;
}
