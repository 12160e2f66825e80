import { spawn } from "node:child_process";
import { constants } from "node:os";
import { createValidator } from "../../protocol/validation.ts";
import { configure } from "../../server/configuration/configuration.ts";
import { locatePi } from "../../server/pi/locate.ts";
import type { PiProgram } from "../../server/pi/spawn-options.ts";

/** Counts how often programs have started one another on the way to pi. */
const hopsVariable = "PI_RPCD_HOPS";
/** pi, through a few wrappers. */
const maxHops = 8;

/** Programs start one another in a circle. */
class CircleError extends Error {
  constructor() {
    super(
      `pi-rpcd-pi was started ${maxHops} times on the way to pi: a wrapper that the search for pi finds starts it again. Set PI_RPCD_PI to the path of the real pi.`,
    );
  }
}

/** The environment of every program that is started on the way to pi. Throws where they start one another in a circle. */
export function countedHop(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const hops = Number(env[hopsVariable] ?? 0) + 1;
  if (!(hops <= maxHops)) throw new CircleError();
  return { ...env, [hopsVariable]: String(hops) };
}

/** The pi that a daemon with this environment would use. */
export async function ownPi(env: NodeJS.ProcessEnv): Promise<PiProgram> {
  const { values, origins } = configure({ file: undefined, env }, createValidator());
  return await locatePi({ configured: origins.pi.kind === "file" ? values.pi : undefined, env });
}

/**
 * Makes this process the real pi: with the same arguments, environment, terminal and process id. Resolves with an exit code
 * only where Node cannot replace a process.
 */
export async function becomePi(
  { kind, path }: Pick<PiProgram, "kind" | "path">,
  argv: readonly string[],
  env: NodeJS.ProcessEnv,
): Promise<number> {
  const [file, args] = kind === "script" ? [process.execPath, [path, ...argv]] : [path, [...argv]];
  // Node's warning that this is experimental would be on pi's stderr.
  process.removeAllListeners("warning");
  if (typeof process.execve === "function") process.execve(file, [file, ...args], env);
  return await started(file, args, env);
}

async function started(file: string, args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const child = spawn(file, args, { env, stdio: "inherit" });
  for (const name of ["SIGINT", "SIGQUIT", "SIGTERM", "SIGHUP"] as const) process.on(name, () => void child.kill(name));
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  child.once("error", reject);
  child.once("exit", (code, signal) => resolve(signal === null ? (code ?? 0) : 128 + constants.signals[signal]));
  return await promise;
}
