import { spawn } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { nodeFlags } from "../../cli/daemon-process.ts";
import type { DaemonFile } from "../../protocol/daemon-file.ts";
import type { Resources, Setting } from "./figure.ts";

const launcher = join(import.meta.dirname, "..", "daemon-process.mjs");

export interface DaemonUnderTestOptions {
  /** The path of the pi to start. */
  readonly pi: string;
  readonly env?: Readonly<Record<string, string>>;
  /** A program that runs the daemon, with its arguments. */
  readonly under?: readonly string[];
  /** Default: a new one for each daemon. */
  readonly stateDir?: string;
}

/** The health of an event loop. */
export interface LoopHealth {
  /** How late timers were. */
  readonly delayP99Ms: number;
  /** The share of the time in which the loop was busy. */
  readonly utilization: number;
}

export interface DaemonUnderTest extends DaemonFile {
  /** Since the previous call; the first call starts the measurement. */
  loopHealth(): Promise<LoopHealth>;
}

let count = 0;

/** Starts the built daemon in a separate process. Its sessions' files are in the figure's directory. */
export async function startDaemonUnderTest(
  setting: Setting,
  resources: Resources,
  { pi, env = {}, under = [], ...given }: DaemonUnderTestOptions,
): Promise<DaemonUnderTest> {
  count += 1;
  const stateDir = given.stateDir ?? join(setting.directory, `d${count}`);
  mkdirSync(stateDir, { recursive: true });
  const command = [...under, process.execPath, ...nodeFlags, launcher, setting.dist, stateDir, pi];
  const child = spawn(command[0] ?? "", command.slice(1), {
    env: {
      ...process.env,
      PI_CODING_AGENT_DIR: join(stateDir, "agent"),
      // Figures about warm children override it.
      PI_RPCD_WARM_CHILDREN: "0",
      ...env,
    },
    stdio: ["pipe", "pipe", "inherit"],
    // The figure handles Ctrl-C: it ends the daemon in order.
    detached: true,
  });
  const exited = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  resources.add(child, async ({ stdin }) => {
    stdin.end();
    await exited;
  });
  const failed = exited.then(() => Promise.reject(new Error("The daemon ended before it was ready.")));
  failed.catch(() => {});
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const next = async (): Promise<unknown> => JSON.parse(String((await Promise.race([lines.next(), failed])).value));
  return {
    ...((await next()) as DaemonFile),
    loopHealth: async () => {
      child.stdin.write("\n");
      return (await next()) as LoopHealth;
    },
  };
}
