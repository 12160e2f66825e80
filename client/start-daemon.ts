import { extname, join } from "node:path";
import { stateDirectory } from "./discovery.ts";
import { DaemonStartError } from "./local-errors.ts";

/** This package's command line: TypeScript in a checkout, JavaScript in the published package. */
const main = join(import.meta.dirname, "..", "cli", `main${extname(import.meta.filename)}`);

/**
 * Runs `pi-rpcd start`, which also waits for a daemon that another process is starting. The daemon outlives this
 * process. Rejects with `DaemonStartError`, or with the reason of `signal`; then no daemon was left.
 */
export async function startDaemon(stateDir: string | undefined, signal: AbortSignal | undefined): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  // Loaded late because a daemon usually runs.
  const { execFile } = process.getBuiltinModule("node:child_process");
  const args = ["--disable-warning=ExperimentalWarning", main, "start", "--json", "--state-dir"];
  execFile(process.execPath, [...args, stateDirectory(stateDir)], { signal }, (error, _stdout, stderr) => {
    if (error === null) resolve();
    else if (signal?.aborted === true) reject(signal.reason);
    else reject(startError(stderr) ?? new DaemonStartError("unexpected", error.message, error));
  });
  await promise;
}

/** The error that the command line prints as JSON. */
function startError(stderr: string): DaemonStartError | undefined {
  for (const line of stderr.split("\n").filter((each) => each.startsWith('{"error":'))) {
    try {
      const { name, message } = (JSON.parse(line) as { error: { name: string; message: string } }).error;
      return new DaemonStartError(name, message);
    } catch {
      // Another line may have it.
    }
  }
  return undefined;
}
