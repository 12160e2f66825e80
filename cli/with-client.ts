import { readDaemonFile, stateDirectory } from "../client/discovery.ts";
import type { Client, ReconnectOptions } from "../client/index.ts";
import { resultChecks } from "./daemon-call.ts";
import { daemonState } from "./daemon-state.ts";
import { readlinkSync } from "./node-builtins.ts";
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

/** A daemon that has not answered after this time is asked once more, by {@link ensured}, which says why. */
const firstTimeoutMs = 5_000;

/**
 * Returns the daemon's state directory; starts a daemon if none runs, unless an option forbids it. Notes about this go
 * to stderr, or to `note`.
 */
export async function ensured(use: ClientUse): Promise<string> {
  const { options, env, signal } = use;
  const stateDir = stateDirectory(options["state-dir"], env);
  if (options["no-start"] === true) return stateDir;
  const found = await daemonState(stateDir, signal);
  if (found.kind === "running") {
    noteIfOlder(found.info, use);
    return stateDir;
  }
  // Loaded late because a daemon usually runs.
  const { ensureDaemon } = await import("./background.ts");
  const background = await ensureDaemon({ stateDir, env, signal });
  if (background.kind === "wasRunning") noteIfOlder(background.running.info, use);
  else {
    const { pid } = background.address;
    report(use, "daemon_started", `no daemon was running; started one (process ${pid}, log ${background.log})`);
  }
  return stateDir;
}

/**
 * Returns what `ask` gets from the daemon; starts a daemon if none runs, unless an option forbids it. `ask` runs again
 * after it failed or took long, because only {@link ensured} finds out and says why.
 */
export async function askDaemon<T>(
  use: ClientUse,
  ask: (stateDir: string, signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const { options, env, signal } = use;
  const stateDir = stateDirectory(options["state-dir"], env);
  if (options["no-start"] === true) return await ask(stateDir, signal);
  try {
    const answer = await ask(stateDir, AbortSignal.any([signal, AbortSignal.timeout(firstTimeoutMs)]));
    // Without a file the daemon has just ended.
    const file = await readDaemonFile(stateDir).catch(() => undefined);
    if (file !== undefined) noteIfOlder(file, use);
    return answer;
  } catch {
    signal.throwIfAborted();
    await ensured(use);
    return await ask(stateDir, signal);
  }
}

function noteIfOlder(daemon: Parameters<typeof olderDaemon>[0], use: ClientUse): void {
  const skew = olderDaemon(daemon);
  if (skew !== undefined) report(use, "daemon_older", skew);
}

function report({ note, output }: ClientUse, name: string, text: string): void {
  if (note === undefined) output.note(name, text);
  else note(text);
}

/** Runs `use` with a client of the daemon; starts a daemon if none runs, unless an option forbids it. */
export async function withClient<T>(clientUse: ClientUse, use: (client: Client) => Promise<T>): Promise<T> {
  const { env, reconnect, note } = clientUse;
  // Loaded late because a command that makes one call by HTTP does not need it.
  const { connect } = await import("../client/connect.ts");
  const client = await askDaemon(clientUse, (stateDir, signal) =>
    connect({
      stateDir,
      start: false,
      signal,
      name: clientName(),
      reconnect: reconnect ?? false,
      validateResults: resultChecks(env),
    }),
  );
  client.onConnection((event) => {
    if (event.kind === "lost" && event.attempt === 1)
      report(clientUse, "connection_lost", "the daemon is gone; waiting for it");
    if (event.kind === "connected" && note !== undefined) note("the daemon is available again");
  });
  try {
    return await use(client);
  } finally {
    await client.close();
  }
}

/** The name of this command for the users of other clients: with its terminal, if it has one, as `pi-rpcd on pts/3`. */
function clientName(): string {
  const [stream] = [process.stdin, process.stdout, process.stderr].filter(({ isTTY }) => isTTY === true);
  const terminal = stream === undefined ? undefined : terminalOf(stream.fd);
  return terminal === undefined ? "pi-rpcd" : `pi-rpcd on ${terminal}`;
}

function terminalOf(fd: number): string | undefined {
  try {
    const path =
      process.platform === "linux"
        ? readlinkSync(`/proc/self/fd/${fd}`)
        : process
            .getBuiltinModule("node:child_process")
            .execFileSync("tty", { stdio: [fd, "pipe", "ignore"], encoding: "utf8", timeout: 1_000 });
    return /^\/dev\/([\w/.-]{1,40})\s*$/.exec(path)?.[1];
  } catch {
    return undefined;
  }
}
