import type { DaemonInfo, PiInfo } from "../../protocol/daemon.ts";
import type { Result } from "../../protocol/methods.ts";
import { Cleanup } from "../cleanup.ts";
import { credentialsAdvice, lackingKeys } from "../credentials.ts";
import { callDaemon } from "../daemon-call.ts";
import { startTemporaryDaemon, temporaryWorkspace } from "../demo/temporary-daemon.ts";
import { reportOf } from "../errors.ts";
import { bad, type Finding, good, odd } from "./finding.ts";

export interface ModelCheck {
  readonly stateDir: string;
  /** The running daemon, whose environment counts; undefined if none runs. */
  readonly info: DaemonInfo | undefined;
  /** The pi of a new daemon. */
  readonly pi: PiInfo;
  /** pi's configuration directory for daemons, if configured. */
  readonly agentDirectory: string | undefined;
  readonly env: NodeJS.ProcessEnv;
  readonly signal: AbortSignal;
}

const name = "model";
const timeoutMs = 60_000;

/** Checks that pi has credentials for a model, which only pi itself knows. */
export async function checkModels(check: ModelCheck): Promise<Finding> {
  const { info, env } = check;
  let list: Result<"model/list">;
  try {
    list = await modelsOf(check);
  } catch (error) {
    check.signal.throwIfAborted();
    return bad(name, `pi does not list its models: ${reportOf(error).message}`, "See: pi-rpcd logs");
  }
  const lacking = checkKeys(info, env);
  if (list.models.length === 0) {
    return bad(name, "no model has credentials", credentialsAdvice({ info, env }));
  }
  if (lacking !== undefined) return lacking;
  const providers = list.providers.filter(({ models }) => models > 0).map(({ id }) => id);
  const count = list.models.length;
  return good(name, `${count} ${count === 1 ? "model has" : "models have"} credentials: ${providers.join(", ")}`);
}

/** The finding about key variables that the running daemon lacks; undefined if there are none. Starts no pi. */
export function checkKeys(info: DaemonInfo | undefined, env: NodeJS.ProcessEnv): Finding | undefined {
  const lacking = lackingKeys(info, env);
  return lacking === undefined ? undefined : odd(name, lacking.found, lacking.todo);
}

async function modelsOf({
  stateDir,
  info,
  pi,
  agentDirectory,
  env,
  signal,
}: ModelCheck): Promise<Result<"model/list">> {
  const either = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
  if (info !== undefined) return await callDaemon("model/list", {}, { stateDir, signal: either });
  const cleanup = new Cleanup();
  try {
    const workspace = temporaryWorkspace("pi-rpcd-doctor-", cleanup);
    const own = agentDirectory === undefined ? env : { ...env, PI_RPCD_AGENT_DIR: agentDirectory };
    await startTemporaryDaemon({ workspace, pi: pi.path, env: own, cleanup, signal: either });
    return await callDaemon("model/list", {}, { stateDir: workspace.stateDir, signal: either });
  } finally {
    await cleanup.run().catch(() => {});
  }
}
