import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { orAborted } from "../../provider/abortable.ts";
import type { Cleanup } from "../cleanup.ts";
import { DemoDaemon } from "../demo/daemon.ts";
import { createWorkspace, type Workspace } from "../demo/workspace.ts";
import { withoutScript } from "../npm.ts";

/** A directory that is removed by the cleanup, and when this process ends early. */
export function temporaryWorkspace(cleanup: Cleanup): Workspace {
  const workspace = createWorkspace("pi-rpcd-doctor-");
  process.once("exit", workspace.remove);
  cleanup.add(() => {
    workspace.remove();
    process.removeListener("exit", workspace.remove);
  });
  return workspace;
}

export interface TemporaryDaemonOptions {
  readonly workspace: Workspace;
  /** An absolute path. */
  readonly pi: string;
  readonly env: NodeJS.ProcessEnv;
  readonly cleanup: Cleanup;
  readonly signal: AbortSignal;
}

/** Starts a daemon in the workspace, without the user's configuration, which is checked separately. */
export async function startTemporaryDaemon(options: TemporaryDaemonOptions): Promise<void> {
  const { workspace, pi, env, cleanup, signal } = options;
  const config = join(workspace.root, "config.json");
  writeFileSync(config, "{}");
  const { stateDir, logFile } = workspace;
  const daemon = new DemoDaemon({ stateDir, logFile, pi, config, env: withoutScript(env) });
  cleanup.add(() => daemon.end());
  await orAborted(daemon.process.listening, signal);
}
