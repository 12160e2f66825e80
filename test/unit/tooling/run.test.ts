import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { expect, test } from "vitest";

const root = join(import.meta.dirname, "../../..");

/** Starts test/fixtures/tooling/ending.ts like all npm scripts start theirs. */
function start(how: string): ChildProcess {
  return spawn(process.execPath, [join(root, "scripts/run.mjs"), "test/fixtures/tooling/ending.ts", how], {
    stdio: ["ignore", "pipe", "inherit"],
  });
}

test("the runner ends with the program's exit code", async () => {
  const [code] = await once(start("7"), "exit");
  expect(code).toBe(7);
});

test("the runner forwards SIGTERM and waits for the program", async () => {
  const runner = start("SIGTERM");
  if (runner.stdout === null) throw new Error("the runner has no stdout");
  await once(runner.stdout, "data");
  runner.kill("SIGTERM");
  const [code] = await once(runner, "exit");
  expect(code).toBe(5);
});
