import { setTimeout as pause } from "node:timers/promises";
import { stateDirectory } from "../client/discovery.ts";
import type { Invocation } from "./command-spec.ts";
import { CommandError } from "./errors.ts";
import { exitCodes } from "./exit-codes.ts";
import { hasOpenFilesIn, runs } from "./process-facts.ts";
import { standing, whyNotRunning } from "./standing.ts";
import { seconds } from "./values.ts";

/** Nothing tells that a process which is not one's own child has ended: it has to be looked for. */
const lookEveryMs = 25;

/** Ends the daemon of the state directory, and waits until its process has gone. */
export async function stop({ options, output, env, signal }: Invocation<"stop">): Promise<number> {
  const timeoutMs = seconds(options.timeout ?? "60", { option: "timeout", command: "stop" });
  const stateDir = stateDirectory(options["state-dir"], env);
  const found = await standing(stateDir, signal);
  if (found.kind !== "running") {
    if (output.json) output.document({ stopped: false, stateDir, reason: found.kind });
    else output.print(`${whyNotRunning(found, stateDir)} Nothing to stop.`);
    return exitCodes.done;
  }
  const { pid } = found.file;
  if (hasOpenFilesIn(pid, stateDir) === false) {
    throw new CommandError(
      "foreign_process",
      `The daemon answers, but process ${pid} here is another program: the daemon probably runs in a container. Stop it there.`,
      { data: { pid } },
    );
  }
  process.kill(pid, "SIGTERM");
  const deadline = AbortSignal.timeout(timeoutMs);
  while (runs(pid)) {
    if (deadline.aborted) {
      const message = `Process ${pid} was told to end and has not within ${timeoutMs / 1_000} s; it goes on ending.`;
      throw new CommandError("deadline_exceeded", message, { exitCode: exitCodes.deadline, data: { pid } });
    }
    await pause(lookEveryMs);
    signal.throwIfAborted();
  }
  if (output.json) output.document({ stopped: true, pid, stateDir });
  else output.print(`The daemon has ended (process ${pid}).`);
  return exitCodes.done;
}
