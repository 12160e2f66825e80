import { stateDirectory } from "../client/discovery.ts";
import type { DaemonInfo } from "../protocol/daemon.ts";
import { keyVariablesIn } from "../protocol/key-variables.ts";
import { callDaemon } from "./daemon-call.ts";
import type { Output } from "./output.ts";
import { isService } from "./service/systemd.ts";

// What to do when pi has no credentials. Only the names of key variables are used, never their values.

export interface LackingKeys {
  readonly found: string;
  readonly todo: string;
}

/** The key variables that only this environment has, and what to do; undefined if there are none. */
export function lackingKeys(info: DaemonInfo | undefined, env: NodeJS.ProcessEnv): LackingKeys | undefined {
  // A daemon of an earlier version does not report its key variables.
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
  /** The running daemon. */
  readonly info: DaemonInfo | undefined;
  readonly env: NodeJS.ProcessEnv;
}

/** The terminal of the daemon's pi is the only place for a login. */
export const howToLogin = "Run `pi-rpcd pi`, then `/login`";

/** How to give pi credentials. */
export function credentialsAdvice({ info, env }: Credentials): string {
  const note = info === undefined ? undefined : lackingNote(info, env);
  if (note !== undefined) return note;
  const start = info === undefined ? "start the daemon" : "restart the daemon (pi-rpcd start --restart)";
  return `${howToLogin}, or ${start} with ANTHROPIC_API_KEY or another provider's key set.`;
}

export interface LackedCredentials {
  readonly message: string;
  /** Undefined: pi has credentials for no provider, and so chose no model. */
  readonly provider?: string | undefined;
}

/** Explains an error of a request that pi did not send because it has no credentials; undefined for any other one. */
export function lackedCredentials(error: string | undefined): LackedCredentials | undefined {
  if (error === "Unknown provider: unknown") return { message: "no model has credentials" };
  const provider = /^Provider is not configured: (\S+)$/.exec(error ?? "")?.[1];
  return provider === undefined ? undefined : { message: `pi has no credentials for ${provider}`, provider };
}

export interface LoginHint {
  /** The option of the command. */
  readonly stateDir: string | undefined;
  readonly output: Output;
  readonly env: NodeJS.ProcessEnv;
}

const infoTimeoutMs = 10_000;

/**
 * Explains a text of pi that tells the reader to use `/login`, which only pi's own terminal has, or an error that pi
 * has no credentials. Returns whether it was such a text.
 */
export async function explainLogin(text: string, { stateDir: given, output, env }: LoginHint): Promise<boolean> {
  const found = loginProblem(text);
  if (found === undefined) return false;
  const stateDir = stateDirectory(given, env);
  const signal = AbortSignal.timeout(infoTimeoutMs);
  const info = await callDaemon("daemon/info", {}, { stateDir, signal }).catch(() => undefined);
  if (info === undefined) return false;
  output.note("login", `${found}. ${credentialsAdvice({ info, env })}`);
  return true;
}

/** What the reader of such a text must know before the advice; undefined for any other text. */
export function loginProblem(text: string): string | undefined {
  if (text.includes(howToLogin)) return undefined;
  const lacked = lackedCredentials(text.replace(/^failed: /, ""));
  if (lacked !== undefined) return lacked.message;
  return /(?:^|[\s'"`])\/login\b/.test(text) ? "/login is a command of pi's terminal, not of pi-rpcd" : undefined;
}

/** Says that prompts will fail, for a session whose model has no credentials. */
export function noModelAdvice(
  model: { readonly provider: string; readonly id: string } | undefined,
  { info, env }: Credentials,
): string {
  const missing =
    model === undefined ? "No model has credentials" : `pi has no credentials for ${model.provider}/${model.id}`;
  return `${missing}: prompts will fail. ${credentialsAdvice({ info, env })}`;
}
