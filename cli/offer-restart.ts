import { createInterface } from "node:readline/promises";
import { daemonState } from "./daemon-state.ts";
import type { Output } from "./output.ts";
import { olderDaemon } from "./version-skew.ts";

export interface RestartOffer {
  readonly stateDir: string;
  readonly output: Output;
  readonly signal: AbortSignal;
}

/** Asks, on a terminal, whether to restart a daemon that is older than this command line. */
export async function wantsRestart({ stateDir, output, signal }: RestartOffer): Promise<boolean> {
  const found = await daemonState(stateDir, signal).catch(() => undefined);
  const older = found?.kind === "running" ? olderDaemon(found.info) : undefined;
  if (older === undefined || found?.kind !== "running") return false;
  output.note("daemon_older", older);
  if (output.json || !output.isTerminal || process.stdin.isTTY !== true) return false;
  const running = found.info.sessions["running"] ?? 0;
  const cost = running === 0 ? "" : ` ${running} ${running === 1 ? "run" : "runs"} would be interrupted.`;
  const asking = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return /^y(?:es)?$/i.test((await asking.question(`Restart it now?${cost} [y/N] `, { signal })).trim());
  } finally {
    asking.close();
  }
}
