import { writeFileSync } from "node:fs";
import type { Reporter, SerializedError, TestCase, TestModule, Vitest } from "vitest/node";
import type { TestOutcome } from "../../scripts/lib/test-counts.ts";

/** Writes the outcome of every test, with its project, to the file PI_RPCD_TEST_OUTCOMES, for scripts/test.ts. */
export default class OutcomesReporter implements Reporter {
  #vitest: Vitest | undefined;

  onInit(vitest: Vitest): void {
    this.#vitest = vitest;
  }

  onTestRunEnd(modules: readonly TestModule[], errors: readonly SerializedError[]): void {
    const file = process.env["PI_RPCD_TEST_OUTCOMES"];
    if (file === undefined) return;
    const someWereSelected = this.#vitest?.config.testNamePattern !== undefined;
    const outcomes = [
      ...modules.flatMap((module) => moduleOutcomes(module, someWereSelected)),
      ...errors.map(errorOutcome),
    ];
    writeFileSync(file, JSON.stringify(outcomes));
  }
}

function moduleOutcomes(module: TestModule, someWereSelected: boolean): readonly TestOutcome[] {
  const project = module.project.name;
  const outcomes = [...module.children.allTests()]
    .map((test) => testOutcome(project, test))
    .filter(({ state, note }) => !(someWereSelected && state === "skipped" && note === undefined));
  // A file that cannot be loaded, or a hook that fails, need not have a test that failed.
  const failedOutsideTests = !module.ok() && !outcomes.some(({ state }) => state === "failed");
  return failedOutsideTests ? [...outcomes, { project, name: module.relativeModuleId, state: "failed" }] : outcomes;
}

function testOutcome(project: string, test: TestCase): TestOutcome {
  const result = test.result();
  const name = `${test.module.relativeModuleId} > ${test.fullName}`;
  if (result.state === "skipped")
    return { project, name, state: "skipped", ...(result.note !== undefined && { note: result.note }) };
  // A test that is still pending when the run ends was not run to its end.
  return { project, name, state: result.state === "passed" ? "passed" : "failed" };
}

function errorOutcome({ message }: SerializedError): TestOutcome {
  return { project: "outside of tests", name: message, state: "failed" };
}
