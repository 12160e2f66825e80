import { expect, test } from "vitest";
import { isThorough, piUnderTest } from "../helpers/pi-versions.ts";
import { operations } from "../soak/operations.ts";
import { repeatedAfterRestart } from "../soak/process-faults.ts";
import { type Report, reportText } from "../soak/report.ts";
import { soak } from "../soak/soak.ts";

const fixedSeed = 20_261;

async function soakWith(seed: number, eachAtLeast: number): Promise<Report> {
  const report = await soak({ seed, pi: piUnderTest(), eachAtLeast });
  process.stdout.write(`${reportText(report)}\n`);
  expect(report.violations, reportText(report)).toEqual([]);
  return report;
}

function expectEach(reports: readonly Report[], atLeast: number): void {
  for (const kind of [...operations.map((operation) => operation.kind), repeatedAfterRestart]) {
    const count = reports.reduce((sum, { faults }) => sum + (faults[kind] ?? 0), 0);
    expect(count, kind).toBeGreaterThanOrEqual(atLeast);
  }
}

test("no receipt is wrong, and no push is lost or duplicated, in rounds of every fault", {
  timeout: 1_800_000,
}, async () => {
  const random = await soakWith(Date.now() % 1_000_000_000, isThorough() ? 6 : 4);
  if (!isThorough()) {
    expectEach([random], 4);
    return;
  }
  const fixed = await soakWith(fixedSeed, 4);
  expect(fixed.pushes + random.pushes).toBeGreaterThanOrEqual(300);
  expectEach([fixed, random], 10);
});
