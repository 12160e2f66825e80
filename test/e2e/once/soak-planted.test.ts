import { expect, test } from "vitest";
import { piUnderTest } from "../../helpers/pi-versions.ts";
import { PatchedSource, plantedBugs } from "../../soak/planted.ts";
import { reportText } from "../../soak/report.ts";
import { soak } from "../../soak/soak.ts";

/** The soak does not know the planted fault; this many pushes must be enough to find it. */
const maxPushes = 300;

test.each([
  ["any start of an answer counts as delivered", "wrong"],
  ["a push is handed over again after a crash", "doubled"],
  ["a daemon begins with numbers that another has used", "seq"],
] as const)("the soak finds it when %s", { timeout: 600_000 }, async (bug, kind) => {
  using source = new PatchedSource(plantedBugs[bug]);
  const pushes = maxPushes / 2;
  const report = await soak({ seed: 7, pi: piUnderTest(), source: source.path, pushes, copiesPerRound: 1 });
  expect(report.pushes).toBeLessThanOrEqual(maxPushes);
  expect(
    report.violations.map((violation) => violation.kind),
    reportText(report),
  ).toContain(kind);
});
