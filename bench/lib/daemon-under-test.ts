import { spawn } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { nodeFlags } from "../../cli/daemon-process.ts";
import type { DaemonFile } from "../../protocol/daemon-file.ts";
import type { Resources, Setting } from "./figure.ts";

const launcher = join(import.meta.dirname, "..", "daemon-process.mjs");

export interface DaemonUnderTestOptions {
  /** Path of the pi that it starts. */
  readonly pi: string;
  readonly env?: Readonly<Record<string, string>>;
  /** A program that runs it, with its arguments. */
  readonly under?: readonly string[];
  /** Default: another one for each daemon. */
  readonly stateDir?: string;
}

/** How an event loop has fared. */
export interface LoopHealth {
  /** How late timers were, beyond what they asked for. */
  readonly delayP99Ms: number;
  /** The share of the time in which it was busy. */
  readonly utilization: number;
}

export interface DaemonUnderTest extends DaemonFile {
  /** Since the last time that it was asked; the first time begins it. */
  loopHealth(): Promise<LoopHealth>;
}

let count = 0;

/** Starts the built daemon as a process of its own. Its sessions' files lie in the figure's directory. */
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
      // A figure that is about warm children says so.
      PI_RPCD_WARM_CHILDREN: "0",
      ...env,
    },
    stdio: ["pipe", "pipe", "inherit"],
    // Ctrl-C is the figure's to act on: it ends the daemon in order.
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
