import { expect, test } from "vitest";
import { piUnderTest } from "../helpers/pi-versions.ts";
import { operations } from "../soak/operations.ts";
import { repeatedAfterRestart } from "../soak/process-faults.ts";
import { reportText } from "../soak/report.ts";
import { soak } from "../soak/soak.ts";

const fixedSeed = 20_261;

// With both versions of pi together: 300 pushes at least, and ten of each fault. `npm run soak` is the long form.
test("no receipt is wrong, and no push is lost or doubled, in hundreds of pushes with five of each fault", {
  timeout: 1_800_000,
}, async () => {
  const randomSeed = Date.now() % 1_000_000_000;
  const fixed = await soak({ seed: fixedSeed, pi: piUnderTest(), eachAtLeast: 2 });
  const random = await soak({ seed: randomSeed, pi: piUnderTest(), eachAtLeast: 3 });
  for (const report of [fixed, random]) {
    process.stdout.write(`${reportText(report)}\n`);
    expect(report.violations, reportText(report)).toEqual([]);
  }
  expect(fixed.pushes + random.pushes).toBeGreaterThanOrEqual(150);
  for (const kind of [...operations.map((operation) => operation.kind), repeatedAfterRestart]) {
    const count = (fixed.faults[kind] ?? 0) + (random.faults[kind] ?? 0);
    expect(count, kind).toBeGreaterThanOrEqual(5);
  }
});
