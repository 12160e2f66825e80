import { expect, test } from "vitest";
import { piUnderTest } from "../../helpers/pi-versions.ts";
import { lateNotifications, PatchedSource, plantedBugs } from "../../soak/planted.ts";
import { reportText } from "../../soak/report.ts";
import { restoreReportText, restoreSoak } from "../../soak/restore/program.ts";
import { soak } from "../../soak/soak.ts";

/** The soak does not know the planted fault; this many pushes must be enough to find it. */
const maxPushes = 300;

test.each([
  ["any start of an answer counts as delivered", "wrong"],
  ["a push is handed over again after a crash", "doubled"],
  ["a daemon begins with numbers that another has used", "seq"],
] as const)("the soak finds it when %s", { timeout: 1_800_000 }, async (bug, kind) => {
  using source = new PatchedSource(plantedBugs[bug]);
  const pushes = maxPushes / 2;
  const report = await soak({ seed: 7, pi: piUnderTest(), source: source.path, pushes, copiesPerRound: 1 });
  expect(report.pushes).toBeLessThanOrEqual(maxPushes);
  expect(
    report.violations.map((violation) => violation.kind),
    reportText(report),
  ).toContain(kind);
});

/** So many kills must be enough to find one. */
const maxKills = 100;

test.each([
  ["a notification of the daemon takes a number that pi's repeated output has", ["gap"]],
  // A prompt or a push ends in another way than it did, or is told twice.
  ["records of a former daemon have their effects again", ["state", "receipt"]],
  // Or a client waits for what is not told.
  ["what a former daemon stored and did not tell is not told", ["receipt", "state"]],
] as const)("the soak of live restore finds it when %s", { timeout: 1_800_000 }, async (bug, kinds) => {
  using source = new PatchedSource(...lateNotifications, plantedBugs[bug]);
  const report = await restoreSoak({ seed: 7, pi: piUnderTest(), source: source.path, kills: maxKills });
  const found = report.faults.filter(({ kind }) => kinds.some((each) => each === kind));
  expect(found, restoreReportText(report)).not.toEqual([]);
});
