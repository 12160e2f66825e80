import { spawn } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";

export interface BackgroundStart {
  readonly stateDir: string;
  /** Further arguments of `start`. */
  readonly arguments: readonly string[];
}

/** What a daemon in the foreground prints with `--json` when it is ready. */
export interface ReadyLine {
  readonly pid: number;
  readonly url: string;
  readonly socketPath: string;
  readonly stateDir: string;
  readonly version: string;
}

/** Why a daemon in the background did not start, in its own words. */
export class BackgroundStartError extends Error {
  override readonly name = "BackgroundStartError";
  readonly kind: string;

  constructor(kind: string, message: string) {
    super(message);
    this.kind = kind;
  }
}

export const logFileName = "daemon.log";

/**
 * Starts this very program as a daemon of its own, away from the terminal, and resolves when it is ready. Its log goes
 * to `daemon.log` in the state directory.
 */
export async function startInBackground({ stateDir, arguments: more }: BackgroundStart): Promise<ReadyLine> {
  mkdirSync(stateDir, { recursive: true, mode: 0o700 });
  const main = join(import.meta.dirname, `main${import.meta.filename.endsWith(".ts") ? ".ts" : ".js"}`);
  const args = ["start", "--foreground", "--json", "--state-dir", stateDir, "--log", join(stateDir, logFileName), ...more];
  const child = spawn(process.execPath, ["--disable-warning=ExperimentalWarning", main, ...args], {
    cwd: "/",
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
  });
  const { promise, resolve, reject } = Promise.withResolvers<ReadyLine>();
  let stdout = "";
  let stderr = "";
  child.stderr.on("data", (chunk: Buffer) => {
    stderr = (stderr + chunk.toString("utf8")).slice(-8_192);
  });
  child.stdout.on("data", (chunk: Buffer) => {
    stdout += chunk.toString("utf8");
    const end = stdout.indexOf("\n");
    if (end !== -1) settle(stdout.slice(0, end));
  });
  child.once("error", reject);
  child.once("close", (code) => reject(new BackgroundStartError("failed", `The daemon ended with code ${code} while it started. ${stderr.trim()}`)));

  function settle(line: string): void {
    const said = JSON.parse(line) as ReadyLine & { readonly error?: { readonly name: string; readonly message: string } };
    if (said.error === undefined) resolve(said);
    else reject(new BackgroundStartError(said.error.name, said.error.message));
  }

  try {
    return await promise;
  } finally {
    child.removeAllListeners("close");
    child.stdout.destroy();
    child.stderr.destroy();
    child.unref();
  }
}
