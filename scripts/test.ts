import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { constants, tmpdir } from "node:os";
import { join } from "node:path";
import { bin, root } from "./lib/command.ts";
import { countTests, describeCounts, skippedWithoutReason, type TestOutcome } from "./lib/test-counts.ts";
import { ensurePi } from "./pi-versions.ts";

// Runs the tests; arguments go to vitest, but for `--all`: also what is once enough, with each version of pi. The last
// line is `N passed, N failed`.

const isAll = process.argv.includes("--all");
const args = process.argv.slice(2).filter((arg) => arg !== "--all");

/** False when only projects are asked for that can do without it. */
function needsDownloadedPi(): boolean {
  const projects = args.flatMap((arg, index) => {
    if (arg === "--project") return args[index + 1] ?? [];
    return arg.startsWith("--project=") ? arg.slice("--project=".length) : [];
  });
  return projects.length === 0 || projects.some((project) => !["unit", "contract", "pi-0.87.1"].includes(project));
}

function runVitest(outcomesFile: string): Promise<number> {
  const reporters = args.some((arg) => arg.startsWith("--reporter")) ? [] : ["--reporter=default"];
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  const vitest = spawn(
    process.execPath,
    [bin("vitest"), "run", ...reporters, "--reporter=./test/setup/outcomes-reporter.ts", ...args],
    {
      cwd: root,
      env: {
        ...process.env,
        ...(isAll && { PI_RPCD_TEST_ALL: "1" }),
        ...(!process.stdout.isTTY && { NO_COLOR: "1" }),
        PI_RPCD_TEST_OUTCOMES: outcomesFile,
      },
      stdio: ["ignore", "inherit", "inherit"],
    },
  );
  // vitest ends what the tests have started before it exits; only then may this process end.
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => vitest.kill(signal));
  vitest.on("error", reject);
  vitest.on("exit", (code, signal) => resolve(code ?? 128 + (signal === null ? 0 : constants.signals[signal])));
  return promise;
}

function readOutcomes(file: string): readonly TestOutcome[] {
  try {
    return JSON.parse(readFileSync(file, "utf8")) as readonly TestOutcome[];
  } catch {
    return [];
  }
}

function report(outcomes: readonly TestOutcome[], code: number): number {
  for (const { project, name, note } of outcomes.filter(skippedWithoutReason)) {
    console.log(`skipped, so it counts as failed: ${project}: ${name} (${note ?? "no reason given"})`);
  }
  const counts = [...countTests(outcomes)];
  const noneRan = counts.every(({ passed, failed }) => passed + failed === 0);
  if (noneRan) console.log("no test ran");
  if (noneRan || (code !== 0 && counts.every(({ failed }) => failed === 0))) {
    counts.push({ project: "outside of tests", passed: 0, failed: 1, skipped: 0 });
  }
  for (const project of counts) console.log(describeCounts(project));
  const passed = counts.reduce((sum, project) => sum + project.passed, 0);
  const failed = counts.reduce((sum, project) => sum + project.failed, 0);
  console.log(`${passed} passed, ${failed} failed`);
  return failed;
}

function fail(error: unknown): never {
  console.error(`pi-rpcd: ${error instanceof Error ? error.message : String(error)}`);
  console.log("0 passed, 1 failed");
  process.exit(1);
}

if (needsDownloadedPi()) {
  try {
    ensurePi();
  } catch (error) {
    fail(error);
  }
}
const work = mkdtempSync(join(tmpdir(), "pi-rpcd-outcomes-"));
try {
  const outcomesFile = join(work, "outcomes.json");
  const code = await runVitest(outcomesFile);
  const failed = report(readOutcomes(outcomesFile), code);
  process.exitCode = code === 0 && failed > 0 ? 1 : code;
} finally {
  rmSync(work, { recursive: true, force: true });
}
