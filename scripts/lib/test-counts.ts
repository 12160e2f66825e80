/** What one test, or one file that could not be run, came to. */
export interface TestOutcome {
  readonly project: string;
  readonly name: string;
  readonly state: "passed" | "failed" | "skipped";
  /** Why it was skipped: `ctx.skip(condition, note)`. */
  readonly note?: string;
}

export interface ProjectCounts {
  readonly project: string;
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

/** Whether a note names the platform that a test cannot run on, and why: `darwin: there is no /proc`. */
function isPlatformReason(note: string | undefined): boolean {
  return note?.startsWith(`${process.platform}: `) ?? false;
}

/** A skipped test fails the run, for it shows nothing, unless its note names this platform. */
export function skippedWithoutReason({ state, note }: TestOutcome): boolean {
  return state === "skipped" && !isPlatformReason(note);
}

/** Counts the outcomes of each project, in the order of their first outcome. */
export function countTests(outcomes: readonly TestOutcome[]): readonly ProjectCounts[] {
  const byProject = Map.groupBy(outcomes, ({ project }) => project);
  return [...byProject].map(([project, tests]) => {
    const passed = tests.filter(({ state }) => state === "passed").length;
    const failed = tests.filter((test) => test.state === "failed" || skippedWithoutReason(test)).length;
    return { project, passed, failed, skipped: tests.length - passed - failed };
  });
}

export function describeCounts({ project, passed, failed, skipped }: ProjectCounts): string {
  const tail = skipped === 0 ? "" : `, ${skipped} skipped`;
  return `${project}: ${passed} passed, ${failed} failed${tail}`;
}

/** The last line `N passed, N failed` of an output. */
export function totalIn(output: string): { readonly passed: number; readonly failed: number } | undefined {
  const [, passed, failed] = [...output.matchAll(/^(\d+) passed, (\d+) failed$/gm)].at(-1) ?? [];
  return passed === undefined ? undefined : { passed: Number(passed), failed: Number(failed) };
}

/** Why a run of tests has failed although no test of it has; undefined when it has not. */
export function failureOfRun(
  counts: readonly ProjectCounts[],
  code: number,
  interruptedBy?: NodeJS.Signals,
): string | undefined {
  if (interruptedBy !== undefined) return `interrupted by ${interruptedBy}`;
  if (counts.every(({ passed, failed }) => passed + failed === 0)) return "no test ran";
  if (code !== 0 && counts.every(({ failed }) => failed === 0)) return `vitest ended with exit code ${code}`;
  return undefined;
}
