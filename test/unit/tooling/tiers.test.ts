import { globSync } from "node:fs";
import { join, matchesGlob } from "node:path";
import { expect, test } from "vitest";
import { longTests, smokeTests, type Tier, testProjects } from "../../../scripts/lib/tiers.ts";

const root = join(import.meta.dirname, "../../..");
const files = globSync("test/**/*.test.ts", { cwd: root });

/** The runs of a tier, each as the project and the file. */
function runsOf(tier: Tier | undefined): readonly string[] {
  return testProjects(tier).flatMap(({ name, include, exclude }) =>
    files
      .filter((file) => include.some((glob) => matchesGlob(file, glob)))
      .filter((file) => !exclude.some((glob) => matchesGlob(file, glob)))
      .map((file) => `${name}: ${file}`),
  );
}

test("each test file belongs to a tier, and no project runs one in both", () => {
  const both = [...runsOf("quick"), ...runsOf("deep")].toSorted();
  expect(both).toEqual(runsOf(undefined).toSorted());
  expect(new Set(both).size).toBe(both.length);
  const run = new Set(both.map((line) => line.slice(line.indexOf(": ") + 2)));
  expect(files.filter((file) => !run.has(file))).toEqual([]);
});

test("each test with a pi runs on the newest, and on the other unless it is in a folder once/", () => {
  const both = new Set([...runsOf("quick"), ...runsOf("deep")]);
  const withPi = files.filter((file) => matchesGlob(file, "test/{integration,e2e}/**"));
  expect(withPi.filter((file) => !both.has(`pi-1.5.2: ${file}`))).toEqual([]);
  expect(withPi.filter((file) => both.has(`pi-0.87.1: ${file}`) === file.includes("/once/"))).toEqual([]);
});

test("each smoke test and each long test exists", () => {
  expect([...smokeTests, ...longTests].filter((file) => !files.includes(file))).toEqual([]);
});
