import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { expect, test } from "vitest";
import { processesWith } from "../../setup/processes.ts";

const root = join(import.meta.dirname, "../../..");
const config = join(root, "test/fixtures/tooling/leaks/vitest.config.ts");

/** Runs one leaking test file in its own vitest, with the set-up of all our tests. */
function runLeak(name: string, env: Readonly<Record<string, string>> = {}): { code: number | null; output: string } {
  const vitest = join(root, "node_modules/vitest/vitest.mjs");
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [vitest, "run", "--config", config, `${name}.leak.ts`],
    {
      cwd: root,
      encoding: "utf8",
      env: { ...process.env, NO_COLOR: "1", ...env },
    },
  );
  return { code: status, output: stdout + stderr };
}

test("a test run that leaves a process fails, names it and ends it", async ({ skip }) => {
  skip(process.platform !== "linux", `${process.platform}: processes are found through /proc`);
  const { code, output } = runLeak("process", { LEAK_TEST: String(process.pid) });
  expect(output).toContain("1 passed");
  expect(output).toMatch(/process \d+ \(parent \d+\): .*left-over/);
  expect(code).toBe(1);
  // The system ends a killed process some time later.
  await expect.poll(() => processesWith(`LEAK_TEST=${process.pid}`)).toEqual([]);
});

test("a test run that leaves a temporary file fails and names it", () => {
  const { code, output } = runLeak("file");
  expect(output).toContain("temporary file: left-over.txt");
  expect(code).toBe(1);
});

test("a test run that leaves nothing of its own passes", () => {
  const { code, output } = runLeak("nothing");
  expect(output).toContain("1 passed");
  expect(code).toBe(0);
});
