import { expect, test } from "vitest";
import { countTests, describeCounts, type TestOutcome } from "../../../scripts/lib/test-counts.ts";

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
