import { readDaemonFile } from "../client/discovery.ts";
import { DaemonNotRunningError } from "../client/local-errors.ts";
import type { DaemonInfo } from "../protocol/daemon.ts";
import type { DaemonFile } from "../protocol/daemon-file.ts";
import { callDaemon } from "./daemon-call.ts";
import { CommandError } from "./errors.ts";

/**
 * The state of a state directory. `absent`: there is no trace of a daemon. `stale`: the daemon of `daemon.json` has
 * ended. `unusable`: `daemon.json` is not valid.
 */
export type DaemonState =
  | { readonly kind: "running"; readonly file: DaemonFile; readonly info: DaemonInfo }
  | { readonly kind: "absent" }
  | { readonly kind: "stale"; readonly file: DaemonFile }
  | { readonly kind: "unusable"; readonly problem: string };

const answerTimeoutMs = 10_000;

/**
 * Asks the daemon itself, because a file and a process id prove nothing. Throws `daemon_silent` if something listens
 * but does not answer, and the errors of {@link callDaemon}.
 */
export async function daemonState(stateDir: string, signal?: AbortSignal): Promise<DaemonState> {
  let file: DaemonFile;
  try {
    file = await readDaemonFile(stateDir);
  } catch (error) {
    if (!(error instanceof DaemonNotRunningError)) throw error;
    return error.reason === "missing" ? { kind: "absent" } : { kind: "unusable", problem: error.message };
  }
  const deadline = AbortSignal.timeout(answerTimeoutMs);
  try {
    const either = signal === undefined ? deadline : AbortSignal.any([signal, deadline]);
    const info = await callDaemon("daemon/info", {}, { stateDir, signal: either });
    if (info.pid === file.pid) return { kind: "running", file, info };
  } catch (error) {
    if (error instanceof DaemonNotRunningError) return { kind: "stale", file };
    if (!deadline.aborted || error !== deadline.reason) throw error;
    throw new CommandError(
      "daemon_silent",
      `Something listens at ${file.socketPath}, but has not answered for ${answerTimeoutMs / 1_000} s. If process ${file.pid} is a daemon that hangs, end it with: kill -9 ${file.pid}`,
      { cause: error },
    );
  }
  const now = await readDaemonFile(stateDir).catch(() => undefined);
  if (now === undefined || now.pid === file.pid) return { kind: "stale", file };
  return daemonState(stateDir, signal);
}

/** Explains a state, for people. */
export function whyNotRunning(found: DaemonState, stateDir: string): string {
  switch (found.kind) {
    case "running":
      return `A daemon runs on ${stateDir}.`;
    case "absent":
      return `No daemon runs on ${stateDir}.`;
    case "stale":
      return `No daemon runs on ${stateDir}; its daemon.json is stale: process ${found.file.pid} has ended, or is now another program.`;
    case "unusable":
      return found.problem;
  }
}
