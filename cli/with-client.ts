import { type Client, connect, stateDirectory } from "../client/index.ts";
import { ensureDaemon } from "./background.ts";
import type { Output } from "./output.ts";

export interface ClientUse {
  readonly options: { readonly "state-dir"?: string; readonly "no-start"?: boolean };
  readonly output: Output;
  readonly env: NodeJS.ProcessEnv;
  readonly signal: AbortSignal;
}

/** Runs `use` with a client of the daemon, which is started if none runs and the options do not forbid it. */
export async function withClient<T>(
  { options, output, env, signal }: ClientUse,
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
  const client = await connect({ stateDir, signal });
  try {
    return await use(client);
  } finally {
    await client.close();
  }
}
