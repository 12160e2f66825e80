import { connect } from "../client/connect.ts";
import { stateDirectory } from "../client/discovery.ts";
import type { Client } from "../client/index.ts";

export interface EditorClientOptions {
  readonly stateDir: string | undefined;
  readonly env: NodeJS.ProcessEnv;
  /** For the users of other clients. */
  readonly name: string;
  /** How long a lost daemon is looked for: an editor's session outlives its restart. Default: 60000. */
  readonly giveUpAfterMs?: number | undefined;
}

/** The daemon's limit of one frame, less its own envelope: a longer line of an editor would end the connection. */
export const maxLineBytes = 16 * 1024 * 1024 - 4_096;

/** How long a daemon may take to start. */
const startWithinMs = 10_000;

/** A daemon that an editor starts gets no more of its environment: it serves others too. */
const daemonsVariables =
  /^(?:HOME|USER|LOGNAME|SHELL|PATH|LANG|LC_.*|TZ|TMPDIR|XDG_.*|PI_CODING_AGENT_DIR|PI_RPCD_.*)$/;

/** A client of the daemon for a program that an editor has started. Starts a daemon if none runs. */
export async function editorClient({
  stateDir: given,
  env,
  name,
  giveUpAfterMs = 60_000,
}: EditorClientOptions): Promise<Client> {
  const stateDir = stateDirectory(given, env);
  const open = () => connect({ stateDir, name, start: false, validateResults: false, reconnect: { giveUpAfterMs } });
  try {
    return await open();
  } catch {
    const own = Object.fromEntries(Object.entries(env).filter(([variable]) => daemonsVariables.test(variable)));
    const { ensureDaemon } = await import("./background.ts");
    await ensureDaemon({ stateDir, env: own, signal: AbortSignal.timeout(startWithinMs) });
    return await open();
  }
}
