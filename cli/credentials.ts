import { stateDirectory } from "../client/discovery.ts";
import type { DaemonInfo, PiInfo } from "../protocol/daemon.ts";
import { keyVariablesIn } from "../protocol/key-variables.ts";
import { callDaemon } from "./daemon-call.ts";
import type { Output } from "./output.ts";
import { isService } from "./service/systemd.ts";

// What to do when pi has no credentials. Of keys only the names of their variables are used, never the values.

export interface LackingKeys {
  readonly found: string;
  readonly todo: string;
}

/** The key variables that only this environment has, and what to do; undefined if there are none. */
export function lackingKeys(info: DaemonInfo | undefined, env: NodeJS.ProcessEnv): LackingKeys | undefined {
  // A daemon of an earlier version does not say which it has.
  if (info?.keyVariables === undefined) return undefined;
  const { keyVariables, stateDir } = info;
  const names = keyVariablesIn(env).filter((name) => !keyVariables.includes(name));
  if (names.length === 0) return undefined;
  const [is, it] = names.length === 1 ? ["is", "it"] : ["are", "them"];
  return {
    found: `${names.join(", ")} ${is} set here, but not in the running daemon`,
    todo: isService(stateDir, env)
      ? `A service has variables of its own: keep ${it} with pi-rpcd service install, then: pi-rpcd start --restart`
      : "Restart it from here: pi-rpcd start --restart",
  };
}

/** The same as one note. */
export function lackingNote(info: DaemonInfo, env: NodeJS.ProcessEnv): string | undefined {
  const lacking = lackingKeys(info, env);
  return lacking === undefined ? undefined : `${lacking.found}. ${lacking.todo}`;
}

export interface Credentials {
  /** The pi that needs them. */
  readonly pi: PiInfo;
  /** The running daemon. */
  readonly info: DaemonInfo | undefined;
  readonly env: NodeJS.ProcessEnv;
}

/** How to give pi credentials. */
export function credentialsAdvice({ pi, info, env }: Credentials): string {
  const note = info === undefined ? undefined : lackingNote(info, env);
  if (note !== undefined) return note;
  const start = info === undefined ? "start the daemon" : "restart the daemon (pi-rpcd start --restart)";
  return `Run ${terminalPi(pi)} and /login, or ${start} with ANTHROPIC_API_KEY or another provider's key set.`;
}

/** The command that starts this pi in a terminal. */
function terminalPi({ source, path }: PiInfo): string {
  if (source === "path") return "`pi`";
  return /\.[cm]?[jt]s$/.test(path) ? `\`node ${path}\`` : `\`${path}\``;
}

export interface LoginHint {
  /** The option of the command. */
  readonly stateDir: string | undefined;
  readonly output: Output;
  readonly env: NodeJS.ProcessEnv;
}

const infoTimeoutMs = 2_000;

/**
 * Explains a text of pi that tells the reader to use `/login`, which only pi's own terminal has. Returns whether it was
 * such a text.
 */
export async function explainLogin(text: string, { stateDir: given, output, env }: LoginHint): Promise<boolean> {
  if (!/(?:^|[\s'"`])\/login\b/.test(text)) return false;
  const stateDir = stateDirectory(given, env);
  const signal = AbortSignal.timeout(infoTimeoutMs);
  const info = await callDaemon("daemon/info", {}, { stateDir, signal }).catch(() => undefined);
  if (info === undefined) return false;
  const advice = credentialsAdvice({ pi: info.pi, info, env });
  output.note("login", `/login is a command of pi's terminal, not of pi-rpcd. ${advice}`);
  return true;
}
