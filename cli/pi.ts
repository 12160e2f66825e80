import { spawn } from "node:child_process";
import { constants } from "node:os";
import { resolve } from "node:path";
import { stateDirectory } from "../client/discovery.ts";
import { createValidator } from "../protocol/validation.ts";
import { configure } from "../server/configuration/configuration.ts";
import { locatePi } from "../server/pi/locate.ts";
import { callDaemon } from "./daemon-call.ts";
import type { Invocation } from "./invocation.ts";

const infoTimeoutMs = 10_000;
/** A terminal sends these to pi, too. */
const fromTerminal = ["SIGINT", "SIGQUIT"] as const;
const forwarded = ["SIGTERM", "SIGHUP"] as const;

/** Runs the pi of the running daemon, or of a new one, in this terminal. Resolves with pi's exit code. */
export async function pi({ options, arguments: words, env }: Invocation<"pi">): Promise<number> {
  const { values, origins } = configure({ file: options.config, env }, createValidator());
  const option = options.pi === undefined ? await daemonsPi(options["state-dir"], env) : resolve(options.pi);
  const configured = origins.pi.kind === "file" ? values.pi : undefined;
  const { kind, path } = await locatePi({ option, configured, env });
  const { agentDirectory } = values;
  // A login must be stored where the daemon's sessions read it.
  const own = agentDirectory === undefined ? env : { ...env, PI_CODING_AGENT_DIR: agentDirectory };
  const [file, args] = kind === "script" ? [process.execPath, [path, ...words]] : [path, [...words]];
  return await inTerminal(file, args, own);
}

/** The pi of the running daemon; undefined if none runs or answers. */
async function daemonsPi(given: string | undefined, env: NodeJS.ProcessEnv): Promise<string | undefined> {
  const signal = AbortSignal.timeout(infoTimeoutMs);
  const call = callDaemon("daemon/info", {}, { stateDir: stateDirectory(given, env), signal });
  return await call.then(
    (info) => info.pi.path,
    () => undefined,
  );
}

/** Runs a program with this process's terminal. Resolves with its exit code, or with 128 + the number of its signal. */
async function inTerminal(file: string, args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  // The first signal must not end the wait, and the second must not end this process.
  for (const name of [...fromTerminal, ...forwarded]) process.removeAllListeners(name);
  for (const name of fromTerminal) process.on(name, () => {});
  const child = spawn(file, args, { env, stdio: "inherit" });
  for (const name of forwarded) process.on(name, () => child.kill(name));
  const { promise, resolve: end, reject } = Promise.withResolvers<number>();
  child.once("error", reject);
  child.once("exit", (code, signal) => end(signal === null ? (code ?? 0) : 128 + constants.signals[signal]));
  return await promise;
}
