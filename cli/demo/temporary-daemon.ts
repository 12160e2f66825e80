import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { keyVariablesIn } from "../../protocol/key-variables.ts";
import { orAborted } from "../../provider/abortable.ts";
import type { AgentDir } from "../../provider/agent-dir.ts";
import type { Cleanup } from "../cleanup.ts";
import { withoutScript } from "../npm.ts";
import { DemoDaemon } from "./daemon.ts";
import { createWorkspace, type Workspace } from "./workspace.ts";

/** A directory that is removed by the cleanup, and when this process ends early. */
export function temporaryWorkspace(name: string, cleanup: Cleanup): Workspace {
  const workspace = createWorkspace(name);
  process.once("exit", workspace.remove);
  cleanup.add(() => {
    workspace.remove();
    process.removeListener("exit", workspace.remove);
  });
  return workspace;
}

/**
 * The environment of a daemon whose only models are those of the scripted provider: without the user's settings of
 * pi and of the daemon, except the choice of pi, and without keys.
 */
export function scriptedEnvironment(env: NodeJS.ProcessEnv, agentDir: Pick<AgentDir, "env">): NodeJS.ProcessEnv {
  const keys = new Set(keyVariablesIn(env));
  const kept = new Set(["PI_RPCD_PI", "PI_RPCD_VALIDATE"]);
  const isKept = (name: string): boolean =>
    !keys.has(name) && !name.startsWith("PI_CODING_AGENT") && (!name.startsWith("PI_RPCD_") || kept.has(name));
  return { ...Object.fromEntries(Object.entries(env).filter(([name]) => isKept(name))), ...agentDir.env };
}

export interface TemporaryDaemonOptions {
  readonly workspace: Workspace;
  /** An absolute path. Default: the daemon's own choice. */
  readonly pi?: string | undefined;
  readonly env: NodeJS.ProcessEnv;
  readonly cleanup: Cleanup;
  readonly signal: AbortSignal;
}

/** Starts a daemon in the workspace, without the user's configuration; resolves when it listens. */
export async function startTemporaryDaemon(options: TemporaryDaemonOptions): Promise<DemoDaemon> {
  const { workspace, pi, env, cleanup, signal } = options;
  const config = join(workspace.root, "config.json");
  // Nothing may be left of it, also if it is killed.
  writeFileSync(config, JSON.stringify({ liveRestore: false }));
  const { stateDir, logFile } = workspace;
  const daemon = new DemoDaemon({ stateDir, logFile, pi, config, env: withoutScript(env) });
  cleanup.add(() => daemon.end());
  await orAborted(daemon.process.listening, signal);
  return daemon;
}
