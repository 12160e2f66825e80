import { defineConfig } from "vitest/config";
import { piVersions } from "./scripts/pi-versions.ts";
import LongestFirst from "./test/setup/sequencer.ts";

/** Faults of programs that stand in for pi, and of what comes from outside: no version of pi makes a difference to them. */
const withoutPi = "test/faults/{fake,hostile}/**";

/**
 * What the version of pi makes no difference to, though it needs one: run with the newest alone, unless
 * `npm run test:all` asks for everything with each.
 */
const once = process.env["PI_RPCD_TEST_ALL"] === "1" ? [] : ["test/**/once/**"];
const newest = Object.keys(piVersions).at(-1);

const withPi = Object.entries(piVersions).map(([version, cli]) => ({
  extends: true as const,
  test: {
    name: `pi-${version}`,
    include: ["test/{integration,e2e,faults}/**/*.test.ts"],
    exclude: version === newest ? [withoutPi] : [withoutPi, ...once],
    env: { PI_RPCD_TEST_PI: cli, PI_RPCD_TEST_PI_VERSION: version },
  },
}));

export default defineConfig({
  test: {
    globalSetup: ["test/setup/global.ts"],
    pool: "forks",
    // One more than the processors of the smallest machine: the tests wait for a third of their time.
    maxWorkers: 3,
    sequence: { sequencer: LongestFirst },
    // No test may depend on being fast: these only end one that hangs.
    testTimeout: 180_000,
    hookTimeout: 180_000,
    teardownTimeout: 30_000,
    expect: { poll: { timeout: 20_000 } },
    // A result or an error that breaks the method table ends the daemon that gave it.
    env: { PI_RPCD_VALIDATE: "1" },
    projects: [
      {
        extends: true,
        // Loading the modules anew for each file would be a third of the work, and no such test may depend on it.
        test: { name: "unit", include: ["test/unit/**/*.test.ts"], isolate: false },
      },
      {
        extends: true,
        test: { name: "contract", include: ["test/contract/**/*.test.ts", `${withoutPi}/*.test.ts`] },
      },
      ...withPi,
    ],
    coverage: {
      provider: "v8",
      include: ["{cli,client,extension,protocol,provider,server}/**/*.ts"],
    },
  },
});
