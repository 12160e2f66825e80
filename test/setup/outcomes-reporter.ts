import { writeFileSync } from "node:fs";
import type { Reporter, SerializedError, TestCase, TestModule, TestSpecification, Vitest } from "vitest/node";
import type { TestOutcome } from "../../scripts/lib/test-counts.ts";

/** How often a progress line is printed without a terminal, in milliseconds. */
const progressEveryMs = 5_000;
/** A progress line names at most this many files with failed tests. */
const maxFailedFiles = 10;

/**
 * Writes the outcome of every test, with its project, to the file PI_RPCD_TEST_OUTCOMES, for scripts/test.ts. Without a
 * terminal it also prints the progress.
 */
export default class OutcomesReporter implements Reporter {
  readonly #startedAt = performance.now();
  readonly #running = new Set<string>();
  #vitest: Vitest | undefined;
  #timer: NodeJS.Timeout | undefined;
  #files = 0;
  #doneFiles = 0;
  #ended: TestOutcome[] = [];

  onInit(vitest: Vitest): void {
    this.#vitest = vitest;
    if (process.env["PI_RPCD_TEST_OUTCOMES"] === undefined) return;
    // vitest does not end the run when it is interrupted.
    process.once("exit", () => this.#write(this.#ended));
    if (!process.stdout.isTTY) this.#timer = setInterval(() => this.#printProgress(), progressEveryMs).unref();
  }

  onTestRunStart(specifications: readonly TestSpecification[]): void {
    this.#files = specifications.length;
  }

  onTestModuleStart(module: TestModule): void {
    this.#running.add(nameOf(module));
  }

  onTestCaseResult(test: TestCase): void {
    this.#ended.push(testOutcome(test.project.name, test));
  }

  onTestModuleEnd(module: TestModule): void {
    this.#running.delete(nameOf(module));
    this.#doneFiles += 1;
  }

  onTestRunEnd(modules: readonly TestModule[], errors: readonly SerializedError[]): void {
    clearInterval(this.#timer);
    const someWereSelected = this.#vitest?.config.testNamePattern !== undefined;
    this.#ended = [
      ...modules.flatMap((module) => moduleOutcomes(module, someWereSelected)),
      ...errors.map(errorOutcome),
    ];
    this.#write(this.#ended);
  }

  #write(outcomes: readonly TestOutcome[]): void {
    const file = process.env["PI_RPCD_TEST_OUTCOMES"];
    if (file !== undefined) writeFileSync(file, JSON.stringify(outcomes));
  }

  #printProgress(): void {
    const seconds = ((performance.now() - this.#startedAt) / 1000).toFixed(0);
    const passed = this.#ended.filter(({ state }) => state === "passed").length;
    const failed = this.#ended.filter(({ state }) => state === "failed");
    const files = [...new Set(failed.map(({ project, name }) => `${project} ${name.split(" > ", 1)[0]}`))];
    const where = files.slice(0, maxFailedFiles).join(", ");
    const running = [...this.#running].join(", ");
    process.stdout.write(
      `${seconds} s: ${passed} tests passed, ${failed.length} failed${where && ` (in ${where})`}; ${this.#doneFiles} of ${this.#files} files done${running && `; running: ${running}`}\n`,
    );
  }
}

function nameOf({ project, relativeModuleId }: TestModule): string {
  return `${project.name} ${relativeModuleId}`;
}

function moduleOutcomes(module: TestModule, someWereSelected: boolean): readonly TestOutcome[] {
  const project = module.project.name;
  const outcomes = [...module.children.allTests()]
    .map((test) => testOutcome(project, test))
    .filter(({ state, note }) => !(someWereSelected && state === "skipped" && note === undefined));
  // A file that cannot be loaded, or a failing hook, may have no failed test.
  const failedOutsideTests = !module.ok() && !outcomes.some(({ state }) => state === "failed");
  return failedOutsideTests ? [...outcomes, { project, name: module.relativeModuleId, state: "failed" }] : outcomes;
}

function testOutcome(project: string, test: TestCase): TestOutcome {
  const result = test.result();
  const name = `${test.module.relativeModuleId} > ${test.fullName}`;
  if (result.state === "skipped")
    return { project, name, state: "skipped", ...(result.note !== undefined && { note: result.note }) };
  // A test that is still pending when the run ends did not finish.
  return { project, name, state: result.state === "passed" ? "passed" : "failed" };
}

function errorOutcome({ message }: SerializedError): TestOutcome {
  return { project: "outside of tests", name: message, state: "failed" };
}
