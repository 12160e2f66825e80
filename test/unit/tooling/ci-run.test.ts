import { spawnSync } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";

const ciRun = join(import.meta.dirname, "../../../.ci/run");

/** Runs .ci/run with an npm whose `test`, `test:deep` and `check` are these shell commands. */
function runCi(
  npmTest: string,
  npmCheck: string,
  npmDeep = 'echo "1 passed, 0 failed"; exit 3',
): { code: number | null; lines: string[] } {
  const folder = mkdtempSync(join(tmpdir(), "ci-run-"));
  try {
    const npm = join(folder, "npm");
    writeFileSync(
      npm,
      `#!/bin/sh\ncase "$*" in\n"run test")\n${npmTest};;\n"run test:deep")\n${npmDeep};;\n"run check")\n${npmCheck};;\nesac\n`,
    );
    // A test installs neither dependencies nor a pi.
    writeFileSync(join(folder, "node"), "#!/bin/sh\n");
    writeFileSync(join(folder, "apt-get"), "#!/bin/sh\n");
    for (const name of ["npm", "node", "apt-get"]) chmodSync(join(folder, name), 0o755);
    const { status, stdout } = spawnSync("bash", [ciRun], {
      encoding: "utf8",
      env: { ...process.env, PATH: `${folder}:${process.env["PATH"]}` },
    });
    return { code: status, lines: stdout.trimEnd().split("\n") };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

test("the last line of CI adds up both tiers of tests and the checks, and is the only one of its form", () => {
  const { code, lines } = runCi(
    'echo "unit: 3 passed, 0 failed"; echo "5 passed, 0 failed"',
    'echo "2 passed, 0 failed"',
    'echo "matrix: 40 passed, 0 failed"; echo "40 passed, 0 failed"',
  );
  expect(lines.at(-1)).toBe("47 passed, 0 failed");
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

test("CI does not fail for deep tests that cannot run here, and fails for one that fails", () => {
  const well = 'echo "5 passed, 0 failed"';
  const notRun = runCi(well, well, 'echo "2 passed, 0 failed"; exit 3');
  expect([notRun.lines.at(-1), notRun.code]).toEqual(["12 passed, 0 failed", 0]);
  const failed = runCi(well, well, 'echo "2 passed, 1 failed"; exit 1');
  expect([failed.lines.at(-1), failed.code]).toEqual(["12 passed, 1 failed", 1]);
  const crashed = runCi(well, well, "exit 134");
  expect([crashed.lines.at(-1), crashed.code]).toEqual(["10 passed, 1 failed", 1]);
});
