import { setTimeout as delay } from "node:timers/promises";
import { connect, DaemonNotRunningError } from "../client/index.ts";
import type { Command } from "./command.ts";
import { exitCodes } from "./exit-codes.ts";

/** A daemon gives each child 15 s; what takes longer is said to take longer. */
const patienceMs = 30_000;
const pollMs = 20;

export const stop: Command = {
  name: "stop",
  summary: "end the daemon and its children in order; sessions stay",
  arguments: "",
  positionals: { min: 0, max: 0 },
  options: {},
  startsDaemon: false,
  examples: ["pi-rpcd stop"],
  run: async ({ stateDir, output, json }) => {
    const pid = await runningPid(stateDir);
    if (pid === undefined) {
      if (json) output.json({ stopped: false });
      else output.line("No daemon runs.");
      return exitCodes.done;
    }
    process.kill(pid, "SIGTERM");
    const ended = await hasEnded(pid);
    if (json) output.json({ stopped: ended, pid });
    else output.line(ended ? `The daemon has ended (process ${pid}).` : `Process ${pid} takes its time; it was told to end.`);
    return ended ? exitCodes.done : exitCodes.failed;
  },
};

/** The process that answers at the daemon's address, never just the number in a file that may be stale. */
async function runningPid(stateDir: string): Promise<number | undefined> {
  try {
    const client = await connect({ stateDir });
    const { pid } = await client.info();
    await client.close();
    return pid;
  } catch (error) {
    if (error instanceof DaemonNotRunningError) return undefined;
    throw error;
  }
}

/** Nobody tells when a process ends that is not a child. */
async function hasEnded(pid: number): Promise<boolean> {
  for (let waited = 0; waited < patienceMs; waited += pollMs) {
    try {
      process.kill(pid, 0);
    } catch {
      return true;
    }
    await delay(pollMs);
  }
  return false;
}
