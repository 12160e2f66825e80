import { stateDirectory } from "../client/discovery.ts";
import { whyNotRunning } from "./daemon-state.ts";
import { endDaemon } from "./end-daemon.ts";
import { exitCodes } from "./exit-codes.ts";
import type { Invocation } from "./invocation.ts";
import { seconds } from "./values.ts";

/** Ends the daemon of the state directory, and waits until its process has ended. */
export async function stop({ options, output, env, signal }: Invocation<"stop">): Promise<number> {
  const timeoutMs = seconds(options.timeout ?? "60", { option: "timeout", command: "stop" });
  const stateDir = stateDirectory(options["state-dir"], env);
  const ended = await endDaemon(stateDir, timeoutMs, signal);
  if (ended.kind === "ended") {
    const { pid } = ended;
    if (output.json) output.document({ stopped: true, pid, stateDir });
    else output.print(`The daemon (process ${pid}) has ended.`);
  } else if (output.json) output.document({ stopped: false, stateDir, reason: ended.found.kind });
  else output.print(`${whyNotRunning(ended.found, stateDir)} There is nothing to stop.`);
  return exitCodes.done;
}
