import { expect, test } from "vitest";
import { piUnderTest } from "../helpers/pi-versions.ts";
import { operations } from "../soak/operations.ts";
import { repeatedAfterRestart } from "../soak/process-faults.ts";
import { reportText } from "../soak/report.ts";
import { soak } from "../soak/soak.ts";

const fixedSeed = 20_261;

test("no receipt is wrong, and no push is lost or doubled, in hundreds of pushes with ten of each fault", {
  timeout: 1_800_000,
}, async () => {
  const randomSeed = Date.now() % 1_000_000_000;
  const fixed = await soak({ seed: fixedSeed, pi: piUnderTest(), eachAtLeast: 4 });
  const random = await soak({ seed: randomSeed, pi: piUnderTest(), eachAtLeast: 6 });
  for (const report of [fixed, random]) {
    process.stdout.write(`${reportText(report)}\n`);
    expect(report.violations, reportText(report)).toEqual([]);
  }
  expect(fixed.pushes + random.pushes).toBeGreaterThanOrEqual(300);
  for (const kind of [...operations.map((operation) => operation.kind), repeatedAfterRestart]) {
    const count = (fixed.faults[kind] ?? 0) + (random.faults[kind] ?? 0);
    expect(count, kind).toBeGreaterThanOrEqual(10);
  }
});
