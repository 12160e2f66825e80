import { type Client, connect, type ReconnectOptions, stateDirectory } from "../client/index.ts";
import { ensureDaemon } from "./background.ts";
import { clientName } from "./client-name.ts";
import { resultChecks } from "./daemon-call.ts";
import type { Output } from "./output.ts";
import { olderDaemon } from "./version-skew.ts";

export interface ClientUse {
  readonly options: { readonly "state-dir"?: string; readonly "no-start"?: boolean };
  readonly output: Output;
  readonly env: NodeJS.ProcessEnv;
  readonly signal: AbortSignal;
  /** How to reconnect. Default: the end of the connection ends the command. */
  readonly reconnect?: ReconnectOptions;
  /** Called with notes that otherwise go to stderr: the daemon was started, has gone, or is available again. */
  readonly note?: (text: string) => void;
}

/**
 * Returns the daemon's state directory; starts a daemon if none runs, unless an option forbids it. Notes about this go
 * to stderr, or to `note`.
 */
export async function ensured({ options, output, env, signal, note }: ClientUse): Promise<string> {
  const report = (name: string, text: string): void => (note === undefined ? output.note(name, text) : note(text));
  const stateDir = stateDirectory(options["state-dir"], env);
  if (options["no-start"] === true) return stateDir;
  const background = await ensureDaemon({ stateDir, env, signal });
  const skew = background.kind === "wasRunning" ? olderDaemon(background.running.info) : undefined;
  if (skew !== undefined) report("daemon_older", skew);
  if (background.kind === "started") {
    const { pid } = background.address;
    report("daemon_started", `no daemon was running; started one (process ${pid}, log ${background.log})`);
  }
  return stateDir;
}

/** Runs `use` with a client of the daemon; starts a daemon if none runs, unless an option forbids it. */
export async function withClient<T>(clientUse: ClientUse, use: (client: Client) => Promise<T>): Promise<T> {
  const { output, env, signal, reconnect, note } = clientUse;
  const report = (name: string, text: string): void => (note === undefined ? output.note(name, text) : note(text));
  const stateDir = await ensured(clientUse);
  const client = await connect({
    stateDir,
    start: false,
    signal,
    name: clientName(),
    reconnect: reconnect ?? false,
    validateResults: resultChecks(env),
  });
  client.onConnection((event) => {
    if (event.kind === "lost" && event.attempt === 1) report("connection_lost", "the daemon is gone; waiting for it");
    if (event.kind === "connected" && note !== undefined) note("the daemon is available again");
  });
  try {
    return await use(client);
  } finally {
    await client.close();
  }
}
