import { type Client, connect, type ReconnectOptions, stateDirectory } from "../client/index.ts";
import { ensureDaemon } from "./background.ts";
import type { Output } from "./output.ts";

export interface ClientUse {
  readonly options: { readonly "state-dir"?: string; readonly "no-start"?: boolean };
  readonly output: Output;
  readonly env: NodeJS.ProcessEnv;
  readonly signal: AbortSignal;
  /** For what a daemon's end does not undo. Default: the end of the connection ends the command. */
  readonly reconnect?: ReconnectOptions;
}

/** Runs `use` with a client of the daemon, which is started if none runs and the options do not forbid it. */
export async function withClient<T>(
  { options, output, env, signal, reconnect }: ClientUse,
  use: (client: Client) => Promise<T>,
): Promise<T> {
  const stateDir = stateDirectory(options["state-dir"], env);
  if (options["no-start"] !== true) {
    const background = await ensureDaemon({ stateDir, env, signal });
    if (background.kind === "started") {
      const { pid } = background.address;
      output.note(
        "daemon_started",
        `no daemon was running, so one was started (process ${pid}, log ${background.log})`,
      );
    }
  }
  const client = await connect({ stateDir, signal, name: "pi-rpcd", reconnect: reconnect ?? false });
  client.onConnection((event) => {
    if (event.kind === "lost" && event.attempt === 1)
      output.note("connection_lost", "the daemon has gone; waiting for it");
  });
  try {
    return await use(client);
  } finally {
    await client.close();
  }
}
