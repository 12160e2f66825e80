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
}

let count = 0;

/** Starts the built daemon as a process of its own. Its sessions' files lie in the figure's directory. */
export async function startDaemonUnderTest(
  setting: Setting,
  resources: Resources,
  { pi, env = {} }: DaemonUnderTestOptions,
): Promise<DaemonFile> {
  count += 1;
  const stateDir = join(setting.directory, `d${count}`);
  mkdirSync(stateDir);
  const child = spawn(process.execPath, [...nodeFlags, launcher, setting.dist, stateDir, pi], {
    env: { ...process.env, PI_CODING_AGENT_DIR: join(stateDir, "agent"), ...env },
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
  const line = await Promise.race([firstLine(child.stdout), failed]);
  return JSON.parse(line) as DaemonFile;
}

function firstLine(stream: NodeJS.ReadableStream): Promise<string> {
  return new Promise((resolve) => createInterface({ input: stream }).once("line", resolve));
}
