import { type Client, connect, DaemonNotRunningError } from "../client/index.ts";
import { startInBackground } from "./background.ts";
import type { Output } from "./output.ts";

export interface ConnectOrStart {
  readonly stateDir: string;
  readonly mayStart: boolean;
  readonly output: Output;
}

/** A client of the daemon on a state directory; the daemon is started if there is none and the command may do so. */
export async function connectOrStart({ stateDir, mayStart, output }: ConnectOrStart): Promise<Client> {
  try {
    return await connect({ stateDir });
  } catch (error) {
    if (!(error instanceof DaemonNotRunningError) || !mayStart) throw error;
  }
  const started = await startInBackground({ stateDir, arguments: [] });
  output.note(`started the daemon (process ${started.pid}); pi-rpcd stop ends it`);
  return await connect({ stateDir });
}
