/** The outcome of one test, or of one file that could not run. */
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

/** Whether a note names this platform and a reason: `darwin: there is no /proc`. */
function isPlatformReason(note: string | undefined): boolean {
  return note?.startsWith(`${process.platform}: `) ?? false;
}

/** A skipped test fails the run, because it proves nothing, unless its note names this platform. */
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

/** Why a run of tests failed although no test failed; undefined if it did not. */
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
