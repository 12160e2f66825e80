import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { CommandError } from "./errors.ts";

export interface WebBuildOptions {
  readonly env: NodeJS.ProcessEnv;
  readonly signal: AbortSignal;
  /** Default: this package. */
  readonly root?: string;
}

const maxShownLines = 20;

/**
 * In a checkout, builds the web console's files if a source is newer, in a process of its own: a bundler keeps much memory.
 * A published package has the files. Throws `web_build_failed`.
 */
export async function buildWeb({ env, signal, root = dirname(import.meta.dirname) }: WebBuildOptions): Promise<void> {
  const script = join(root, "scripts", "build-web.ts");
  if (!existsSync(script)) return;
  const builtAt = statSync(join(root, "dist", "web", "files.json"), { throwIfNoEntry: false })?.mtimeMs ?? 0;
  if (["web", "client", "protocol"].every((folder) => newest(join(root, folder)) < builtAt)) return;
  const build = spawn(process.execPath, [script], { cwd: root, env, stdio: ["ignore", "ignore", "pipe"], signal });
  let said = "";
  build.stderr.setEncoding("utf8").on("data", (text: string) => {
    said = (said + text).slice(-8_192);
  });
  try {
    await once(build, "close");
  } catch (cause) {
    signal.throwIfAborted();
    throw failed("it could not be started", said, cause);
  }
  if (build.exitCode !== 0) throw failed(`exit code ${build.exitCode ?? build.signalCode}`, said);
}

function failed(why: string, said: string, cause?: unknown): CommandError {
  const lines = said.trimEnd().split("\n").slice(-maxShownLines);
  return new CommandError("web_build_failed", `The web console could not be built: ${why}.`, { lines, cause });
}

/** The time of the newest file in a folder. */
function newest(folder: string): number {
  const names = readdirSync(folder, { recursive: true, encoding: "utf8" });
  return Math.max(0, ...names.map((name) => statSync(join(folder, name), { throwIfNoEntry: false })?.mtimeMs ?? 0));
}
