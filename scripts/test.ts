import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { constants, tmpdir } from "node:os";
import { join } from "node:path";
import { bin, root, run } from "./lib/command.ts";
import {
  countTests,
  describeCounts,
  failureOfRun,
  type ProjectCounts,
  skippedWithoutReason,
  type TestOutcome,
  totalIn,
} from "./lib/test-counts.ts";
import { missingPrograms, programs, type Tier } from "./lib/tiers.ts";
import { ensurePi } from "./pi-versions.ts";

// Runs the quick tier of the tests; with `--deep` all others, and the faults of scripts/faults.ts; with `--all` both,
// and the tests in folders `once/` with each version of pi. With `--deep` and `--all` it builds dist/ first, for the
// programs that tests start. Further arguments go to vitest, and select from all tests. The last line is
// `N passed, N failed`. The exit code is 3 if all tests have passed, but a program is missing for some.

const isAll = process.argv.includes("--all");
const isDeep = process.argv.includes("--deep");
const args = process.argv.slice(2).filter((arg) => arg !== "--all" && arg !== "--deep");
const tier: Tier | undefined = isAll ? undefined : isDeep ? "deep" : args.length === 0 ? "quick" : undefined;
const projects = args.flatMap((arg, index) => {
  if (arg === "--project") return args[index + 1] ?? [];
  return arg.startsWith("--project=") ? arg.slice("--project=".length) : [];
});

/** False if only projects are requested that do not need it. */
function needsDownloadedPi(): boolean {
  return (
    projects.length === 0 || projects.some((project) => !["unit", "contract", "faults", "pi-0.87.1"].includes(project))
  );
}

// Where a page fault is expensive, as on some virtual machines, a fifth of the work of a starting pi is that it touches
// pages of memory for the first time. With huge pages for malloc there are fewer. Only glibc reads this.
process.env["GLIBC_TUNABLES"] ??= "glibc.malloc.hugetlb=1:glibc.malloc.top_pad=16777216";

/** The signal that interrupted the run. */
let interruptedBy: NodeJS.Signals | undefined;

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
        ...((isDeep || isAll) && { PI_RPCD_TEST_BUILT: "1" }),
        ...(tier !== undefined && { PI_RPCD_TEST_TIER: tier }),
        ...(!process.stdout.isTTY && { NO_COLOR: "1" }),
        PI_RPCD_TEST_OUTCOMES: outcomesFile,
      },
      stdio: ["ignore", "inherit", "inherit"],
    },
  );
  // vitest ends the processes of tests before it exits; only then may this process end.
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    process.on(signal, () => {
      interruptedBy ??= signal;
      vitest.kill(signal);
    });
  }
  vitest.on("error", reject);
  vitest.on("exit", (code, signal) => {
    interruptedBy ??= signal ?? undefined;
    resolve(code ?? 128 + (signal === null ? 0 : constants.signals[signal]));
  });
  return promise;
}

function readOutcomes(file: string): readonly TestOutcome[] {
  try {
    return JSON.parse(readFileSync(file, "utf8")) as readonly TestOutcome[];
  } catch {
    return [];
  }
}

/** Faults that are injected from outside. They mostly wait, so they run during the tests. */
async function runFaults(): Promise<ProjectCounts> {
  const script = ["--disable-warning=ExperimentalWarning", "scripts/faults.ts"];
  const { code, output } = await run(process.execPath, script, {
    timeoutMs: 7_200_000,
    env: { PI_RPCD_TEST_BUILT: "1" },
  });
  console.log(`\n== faults from outside\n${output.trimEnd().split("\n").slice(0, -1).join("\n")}\n`);
  if (code === 3) missing.push("faults that this machine cannot inject (named above)");
  const total = totalIn(output) ?? { passed: 0, failed: 0 };
  const crashed = code !== 0 && code !== 3 && total.failed === 0;
  return { project: "faults from outside", ...total, failed: crashed ? 1 : total.failed, skipped: 0 };
}

function report(outcomes: readonly TestOutcome[], others: readonly ProjectCounts[], code: number): number {
  for (const { project, name, note } of outcomes.filter(skippedWithoutReason)) {
    console.log(`skipped, so it counts as failed: ${project}: ${name} (${note ?? "no reason given"})`);
  }
  const counts = [...countTests(outcomes)];
  const why = failureOfRun(counts, code, interruptedBy);
  if (why !== undefined) {
    console.log(why);
    counts.push({ project: "outside of tests", passed: 0, failed: 1, skipped: 0 });
  }
  counts.push(...others);
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
if (isDeep || isAll) {
  const { code, output } = await run(process.execPath, [
    "--disable-warning=ExperimentalWarning",
    "scripts/build.ts",
    "--without-types",
  ]);
  if (code !== 0) fail(new Error(`The build failed:\n${output}`));
}
// vitest has no project whose programs are missing.
const withPrograms = Object.keys(programs).filter((name) =>
  projects.length > 0 ? projects.includes(name) : isDeep || isAll,
);
const missing = withPrograms.flatMap((name) => missingPrograms(name).map((why) => `${name}: ${why}`));
const othersToRun = projects.filter((name) => !missing.some((what) => what.startsWith(`${name}: `)));
const work = mkdtempSync(join(tmpdir(), "pi-rpcd-outcomes-"));
try {
  if (projects.length > 0 && othersToRun.length === 0) {
    for (const what of missing) console.log(`not run: ${what}`);
    console.log("0 passed, 0 failed");
    process.exitCode = 3;
  } else {
    const outcomesFile = join(work, "outcomes.json");
    const [code, ...others] = await Promise.all([runVitest(outcomesFile), ...(tier === "deep" ? [runFaults()] : [])]);
    for (const what of missing) console.log(`not run: ${what}`);
    const failed = report(readOutcomes(outcomesFile), others, code);
    if (code !== 0) process.exitCode = code;
    else if (failed > 0) process.exitCode = 1;
    else if (missing.length > 0) process.exitCode = 3;
  }
} finally {
  rmSync(work, { recursive: true, force: true });
}
