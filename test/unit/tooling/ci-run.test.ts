import { spawnSync } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";

const ciRun = join(import.meta.dirname, "../../../.ci/run");

/** Runs .ci/run with an npm whose `test`, `run check`, `run test:faults` and other tests are these shell commands. */
function runCi(
  npmTest: string,
  npmCheck: string,
  npmFaults = 'echo "1 passed, 0 failed"',
  npmPrograms = 'echo "0 passed, 0 failed"; exit 3',
): { code: number | null; lines: string[] } {
  const folder = mkdtempSync(join(tmpdir(), "ci-run-"));
  try {
    const npm = join(folder, "npm");
    writeFileSync(
      npm,
      `#!/bin/sh\ncase "$*" in\ntest)\n${npmTest};;\n*test:faults)\n${npmFaults};;\n*test:*)\n${npmPrograms};;\n*)\n${npmCheck};;\nesac\n`,
    );
    // Nothing is installed for a test.
    writeFileSync(join(folder, "apt-get"), "#!/bin/sh\n");
    for (const name of ["npm", "apt-get"]) chmodSync(join(folder, name), 0o755);
    const { status, stdout } = spawnSync("bash", [ciRun], {
      encoding: "utf8",
      env: { ...process.env, PATH: `${folder}:${process.env["PATH"]}` },
    });
    return { code: status, lines: stdout.trimEnd().split("\n") };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

test("the last line of CI adds up tests and checks, and is the only one of its form", () => {
  const { code, lines } = runCi(
    'echo "unit: 3 passed, 0 failed"; echo "5 passed, 0 failed"',
    'echo "2 passed, 0 failed"',
  );
  expect(lines.at(-1)).toBe("8 passed, 0 failed");
  expect(lines.filter((line) => /^\d+ passed, \d+ failed$/.test(line))).toHaveLength(1);
  expect(code).toBe(0);
});

test.each([
  ["a test fails", 'echo "4 passed, 1 failed"; exit 1', 'echo "2 passed, 0 failed"', "7 passed, 1 failed"],
  ["the tests crash without a count", "exit 134", 'echo "2 passed, 0 failed"', "3 passed, 1 failed"],
  ["the tests end well without a count", "true", 'echo "2 passed, 0 failed"', "3 passed, 1 failed"],
  ["no test ran", 'echo "0 passed, 0 failed"', 'echo "2 passed, 0 failed"', "3 passed, 1 failed"],
  [
    "a check counts no failure but exits with one",
    'echo "5 passed, 0 failed"',
    'echo "2 passed, 0 failed"; exit 3',
    "8 passed, 1 failed",
  ],
])("CI fails when %s", (_when, npmTest, npmCheck, last) => {
  const { code, lines } = runCi(npmTest, npmCheck);
  expect(lines.at(-1)).toBe(last);
  expect(code).toBe(1);
});

test("CI takes faults that cannot be put in here for no failure, and one that is met for one", () => {
  const well = 'echo "5 passed, 0 failed"';
  const notRun = runCi(well, well, 'echo "2 passed, 0 failed"; exit 3');
  expect([notRun.lines.at(-1), notRun.code]).toEqual(["12 passed, 0 failed", 0]);
  const screens = runCi(well, well, undefined, 'echo "4 passed, 0 failed"');
  expect([screens.lines.at(-1), screens.code]).toEqual(["19 passed, 0 failed", 0]);
  const failed = runCi(well, well, undefined, 'echo "3 passed, 1 failed"; exit 1');
  expect([failed.lines.at(-1), failed.code]).toEqual(["17 passed, 2 failed", 1]);
  const met = runCi(well, well, 'echo "2 passed, 1 failed"; exit 1');
  expect([met.lines.at(-1), met.code]).toEqual(["12 passed, 1 failed", 1]);
});
