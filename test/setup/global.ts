import { randomUUID } from "node:crypto";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { TestProject } from "vitest/node";
import { codeCaches } from "../../server/pi/code-caches.ts";
import { processesWith, type RunningProcess } from "./processes.ts";

// Processes and temporary files of a test run are recognisable: the processes carry
// TEST_RUN_OF_PI_RPCD, the files are below TMPDIR. Anything left at the end fails the run.

/** Files that pi and Node leave by themselves. */
const foreign = [/^cache$/, /^jiti$/, /^node-compile-cache$/, /^pi-bash-.*\.log$/];

/** How long killed processes may take to disappear, in milliseconds, also on a loaded machine. */
const goneWithinMs = 60_000;

/** How often processes are searched and killed when a run is interrupted. */
const maxSweeps = 50;

export default function setup({ vitest }: TestProject): () => Promise<void> {
  const run = randomUUID();
  const directory = mkdtempSync(join(tmpdir(), "pi-rpcd-test-"));
  process.env["TEST_RUN_OF_PI_RPCD"] = run;
  process.env["TMPDIR"] = directory;
  // A spare child for each kind of session would double the number of starts; tests about spare children enable them.
  process.env["PI_RPCD_WARM_CHILDREN"] = "0";
  // The tests do not use the configuration of the user who runs them.
  process.env["XDG_CONFIG_HOME"] = join(directory, "no-configuration");
  // pi's compiled code is kept between runs, unless another user could replace the checkout's directories.
  const kept = join(import.meta.dirname, "..", "..", ".cache");
  const isKept = codeCaches({ XDG_CACHE_HOME: kept }).directory !== undefined;
  process.env["XDG_CACHE_HOME"] = isKept ? kept : join(directory, "cache");
  // Cached code makes coverage less exact.
  if (!vitest.config.coverage.enabled) {
    process.env["NODE_COMPILE_CACHE"] = join(import.meta.dirname, "..", "..", ".cache", "compile");
  }

  const marker = `TEST_RUN_OF_PI_RPCD=${run}`;
  const sweep = (): void => {
    for (let round = 0; round < maxSweeps; round += 1) {
      const left = processesWith(marker).filter(({ pid }) => pid !== process.pid);
      if (left.length === 0) break;
      for (const { pid } of left) kill(pid);
      // One of them may have started another before its end.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20);
    }
    rmSync(directory, { recursive: true, force: true, maxRetries: 3 });
  };
  // vitest runs no teardown when it is interrupted.
  process.once("exit", sweep);

  return async () => {
    const processes = await remainingProcesses(marker);
    const files = readdirSync(directory).filter((name) => !foreign.some((pattern) => pattern.test(name)));
    for (const { pid } of processes) kill(pid);
    rmSync(directory, { recursive: true, force: true, maxRetries: 3 });
    const left = [
      ...processes.map(({ pid, parent, command }) => `process ${pid} (parent ${parent}): ${command}`),
      ...files.map((name) => `temporary file: ${name}`),
    ];
    if (left.length > 0) throw new Error(`The tests left processes or files:\n  ${left.join("\n  ")}`);
  };
}

async function remainingProcesses(marker: string): Promise<readonly RunningProcess[]> {
  const deadline = Date.now() + goneWithinMs;
  for (;;) {
    const remaining = processesWith(marker).filter((found) => found.pid !== process.pid && !isWorker(found));
    if (remaining.length === 0 || Date.now() > deadline) return remaining;
    // The end of a process that another one started is no event.
    await sleep(50);
  }
}

/** vitest ends its workers only after this. */
function isWorker({ parent, command }: RunningProcess): boolean {
  return parent === process.pid && /[/\\]vitest[/\\]dist[/\\]workers?[/\\]/.test(command);
}

function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has ended by itself.
  }
}
