import { expect, test } from "vitest";
import {
  countTests,
  describeCounts,
  failureOfRun,
  type TestOutcome,
  totalIn,
} from "../../../scripts/lib/test-counts.ts";

function outcome(state: TestOutcome["state"], note?: string): TestOutcome {
  return { project: "unit", name: "a test", state, ...(note !== undefined && { note }) };
}

test("a skipped test counts as failed unless its note names this platform", () => {
  const [counts] = countTests([
    outcome("passed"),
    outcome("failed"),
    outcome("skipped"),
    outcome("skipped", "flaky"),
    outcome("skipped", `${process.platform}: there is no such signal`),
    outcome("skipped", "another-platform: there is no such signal"),
  ]);
  expect(counts).toEqual({ project: "unit", passed: 1, failed: 4, skipped: 1 });
});

test("each project is counted by itself", () => {
  const counts = countTests([outcome("passed"), { ...outcome("passed"), project: "pi-1.5.2" }, outcome("passed")]);
  expect(counts.map(describeCounts)).toEqual(["unit: 2 passed, 0 failed", "pi-1.5.2: 1 passed, 0 failed"]);
});

test("a run that fails outside its tests reports why, and an interrupted one reports it", () => {
  const green = countTests([outcome("passed")]);
  expect(failureOfRun(green, 0)).toBeUndefined();
  expect(failureOfRun(green, 1)).toBe("vitest ended with exit code 1");
  expect(failureOfRun(countTests([outcome("failed")]), 1)).toBeUndefined();
  expect(failureOfRun([], 0)).toBe("no test ran");
  expect(failureOfRun([], 130, "SIGINT")).toBe("interrupted by SIGINT");
  expect(failureOfRun(green, 130, "SIGTERM")).toBe("interrupted by SIGTERM");
});

test("the total of an output is its last line of that form", () => {
  expect(totalIn("unit: 1 passed, 0 failed\n1 passed, 0 failed\n12 passed, 3 failed\n")).toEqual({
    passed: 12,
    failed: 3,
  });
  expect(totalIn("1 passed")).toBeUndefined();
});
