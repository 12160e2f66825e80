import { expect, test } from "vitest";
import { isThorough, piUnderTest } from "../helpers/pi-versions.ts";
import { operations } from "../soak/operations.ts";
import { repeatedAfterRestart } from "../soak/process-faults.ts";
import { reportText } from "../soak/report.ts";
import { soak } from "../soak/soak.ts";

test("no receipt is wrong, and no push is lost or duplicated, in rounds of every fault", {
  timeout: 1_800_000,
}, async () => {
  const eachAtLeast = isThorough() ? 4 : 2;
  // Another seed each time, which the report has: `npm run soak` repeats it.
  const report = await soak({ seed: Date.now() % 1_000_000_000, pi: piUnderTest(), eachAtLeast });
  process.stdout.write(`${reportText(report)}\n`);
  expect(report.violations, reportText(report)).toEqual([]);
  for (const kind of [...operations.map((operation) => operation.kind), repeatedAfterRestart]) {
    expect(report.faults[kind] ?? 0, kind).toBeGreaterThanOrEqual(eachAtLeast);
  }
});
