import { expect, test } from "vitest";
import { isThorough, piUnderTest } from "../../helpers/pi-versions.ts";
import { type RestoreReport, restoreReportText, restoreSoak } from "../../soak/restore/program.ts";

// `npm run soak -- --restore --kills 200` is the long form.

async function soakWith(kills: number): Promise<RestoreReport> {
  const report = await restoreSoak({ seed: Date.now() % 1_000_000_000, pi: piUnderTest(), kills });
  process.stdout.write(`${restoreReportText(report)}\n`);
  expect(report.faults, restoreReportText(report)).toEqual([]);
  return report;
}

test("without a kill clients get what pi wrote, and the provider gets each request once", async () => {
  await soakWith(0);
});

test("killed daemons change nothing that clients get, and nothing that the provider gets", {
  timeout: 1_800_000,
}, async () => {
  const kills = isThorough() ? 12 : 6;
  const report = await soakWith(kills);
  expect(Object.values(report.kills).reduce((sum, count) => sum + count, 0)).toBe(kills);
});
