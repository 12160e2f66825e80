import { endsChildren as agentEndsChildren, isLaunchAgent } from "../service/launchd.ts";
import { isService, endsChildren as unitEndsChildren } from "../service/systemd.ts";
import { type Finding, good, odd } from "./finding.ts";

/** Checks the service that starts the daemon of a state directory. Undefined without one. */
export function checkService(stateDir: string, env: NodeJS.ProcessEnv): Finding | undefined {
  const name = "service";
  const isUnit = isService(stateDir, env);
  if (!isUnit && !isLaunchAgent(stateDir, env)) return undefined;
  const manager = isUnit ? "systemd" : "launchd";
  if (!(isUnit ? unitEndsChildren(env) : agentEndsChildren(env))) return good(name, `${manager} starts the daemon`);
  const problem = `${manager} ends all pi processes with the daemon, also if it crashes: the service is of an older version`;
  return odd(name, problem, "pi-rpcd service install");
}
