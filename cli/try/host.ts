import { randomBytes } from "node:crypto";
import { extname, join } from "node:path";
import { connect, isToolExecutionStart, type SessionHandle } from "../../client/index.ts";
import { untilAborted } from "../../provider/abortable.ts";
import { createAgentDir } from "../../provider/agent-dir.ts";
import { startProvider } from "../../provider/server.ts";
import { Cleanup } from "../cleanup.ts";
import { scriptedEnvironment, startTemporaryDaemon, temporaryWorkspace } from "../demo/temporary-daemon.ts";
import { reportOf } from "../errors.ts";
import type { HostReport, Stage } from "./host-process.ts";
import { pushText, slowCommand, tourReply } from "./tour.ts";

// Started by HostProcess. Opens a directory, a scripted model, a daemon and a session, and another client that pushes.
// Ends and removes all of it when the parent process has ended or disconnects.

const model = { id: "model", cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 } };
/** An active run must not delay the end. */
const settings = { PI_RPCD_DRAIN_MS: "0" };

const cleanup = new Cleanup();
const ending = new AbortController();
process.once("disconnect", () => ending.abort(new Error("The parent process has ended.")));
for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
  process.on(name, () => ending.abort(new Error(`Received ${name}.`)));
}
if (process.connected !== true) ending.abort(new Error("There is no parent process."));

try {
  report({ kind: "open", stage: await open(process.argv[2], ending.signal) });
  await untilAborted(ending.signal);
} catch (error) {
  if (!ending.signal.aborted) report({ kind: "failed", error: reportOf(error) });
}
await cleanup.run().finally(() => process.exit());

async function open(pi: string | undefined, signal: AbortSignal): Promise<Stage> {
  signal.throwIfAborted();
  const workspace = temporaryWorkspace("pi-rpcd-try-", cleanup);
  const provider = await startProvider({ otherwise: tourReply });
  cleanup.add(() => provider.close());
  const agentDir = await createAgentDir({ provider, models: [model], parentDir: workspace.root });
  const env = { ...scriptedEnvironment(process.env, agentDir), ...settings };
  const daemon = await startTemporaryDaemon({ workspace, pi, env, cleanup, signal });
  const client = await connect({ stateDir: workspace.stateDir, name: "a script", signal });
  cleanup.add(() => client.close());
  const extensions = [join(import.meta.dirname, `ask${extname(import.meta.filename)}`)];
  const session = await client.createSession({ cwd: workspace.cwd, extensions }, { signal });
  void pushDuringTools(session, signal).catch(() => {});
  const pids = [daemon.process.pid, session.info?.pid].filter((pid) => pid !== undefined);
  return { root: workspace.root, stateDir: workspace.stateDir, sessionId: session.id, pids };
}

/** Pushes a message into each run while its slow tool runs. */
async function pushDuringTools(session: SessionHandle, signal: AbortSignal): Promise<void> {
  for await (const { event } of session.events({ signal })) {
    if (!isToolExecutionStart(event)) continue;
    const { command } = event.args as { readonly command?: unknown };
    if (command !== slowCommand) continue;
    const content = pushText(`318-${randomBytes(3).toString("hex")}`);
    await session.push({ customType: "script", content }, { signal }).accepted;
  }
}

function report(message: HostReport): void {
  if (process.connected === true) process.send?.(message);
}
