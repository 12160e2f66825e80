import { mkdirSync, readFileSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";
import { DAEMON_FILE_NAME, type DaemonFile } from "../../protocol/daemon-file.ts";
import { within } from "./deadline.ts";
import type { Resources, Setting } from "./figure.ts";
import { run } from "./run.ts";

const probe = pathToFileURL(join(import.meta.dirname, "..", "fixtures", "probe.mjs")).href;
const startSeconds = 30;
const endSeconds = 20;

export interface DaemonUnderTestOptions {
  /** The path of the pi to start. */
  readonly pi: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Default: a new one for each daemon. */
  readonly stateDir?: string;
  /** The command line's file. Default: that of the measured build. */
  readonly program?: string;
}

/** The health of an event loop. */
export interface LoopHealth {
  /** How late timers were. */
  readonly delayP99Ms: number;
  /** The share of the time in which the loop was busy. */
  readonly utilization: number;
}

export interface DaemonUnderTest extends DaemonFile {
  readonly stateDir: string;
  /** Since the previous call; the first call starts the measurement. */
  loopHealth(): Promise<LoopHealth>;
  /** Heap and buffers after a collection, in MiB. */
  collectedMiB(): Promise<number>;
  /** Ends it, before the figure's end. */
  stop(): Promise<void>;
}

let count = 0;

/** The command line of the measured build. */
export function commandLine({ dist }: Setting): string {
  return join(dist, "cli", "main.js");
}

/** Starts the daemon with `pi-rpcd start`. Its sessions' files are in the figure's directory. */
export async function startDaemonUnderTest(
  setting: Setting,
  resources: Resources,
  { pi, env = {}, program = commandLine(setting), ...given }: DaemonUnderTestOptions,
): Promise<DaemonUnderTest> {
  count += 1;
  const stateDir = given.stateDir ?? join(setting.directory, `d${count}`);
  mkdirSync(stateDir, { recursive: true });
  const socketPath = join(setting.directory, `p${count}`);
  const server = createServer().listen(socketPath);
  const connected = new Promise<Socket>((resolve) => server.once("connection", resolve));
  const args = ["start", "--json", "--state-dir", stateDir, "--pi", pi, "--log-level", "warn"];
  const starting = run(process.execPath, [program, ...args], {
    stdout: "ignore",
    killAfterMs: startSeconds * 1_000,
    env: {
      ...process.env,
      PI_CODING_AGENT_DIR: join(stateDir, "agent"),
      // Figures about warm children override it.
      PI_RPCD_WARM_CHILDREN: "0",
      ...env,
      BENCH_PROBE: socketPath,
      NODE_OPTIONS: `--import=${probe}`,
    },
  });
  const { code } = await within(startSeconds, "the daemon's start", starting);
  if (code !== 0) throw new Error(`"pi-rpcd start" ended with code ${code}.`);
  const socket = await within(startSeconds, "the connection of the daemon's probe", connected);
  const closed = new Promise<void>((resolve) => socket.on("error", () => {}).once("close", () => resolve()));
  server.close();
  const file = JSON.parse(readFileSync(join(stateDir, DAEMON_FILE_NAME), "utf8")) as DaemonFile;
  let stopping: Promise<void> | undefined;
  const stop = (): Promise<void> => {
    socket.end();
    stopping ??= within(endSeconds, "the daemon's end", closed).catch(() => void process.kill(file.pid, "SIGKILL"));
    return stopping;
  };
  resources.add(socket, stop);
  const lines = createInterface({ input: socket })[Symbol.asyncIterator]();
  const ask = async (line: string): Promise<unknown> => {
    socket.write(`${line}\n`);
    const { value } = await within(10, "the answer of the daemon's probe", lines.next());
    return JSON.parse(String(value));
  };
  return {
    ...file,
    stateDir,
    loopHealth: async () => (await ask("")) as LoopHealth,
    collectedMiB: async () => ((await ask("memory")) as { readonly bytes: number }).bytes / 2 ** 20,
    stop,
  };
}
