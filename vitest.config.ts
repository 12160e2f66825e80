import { defineConfig } from "vitest/config";
import { missingPrograms, type Tier, testProjects } from "./scripts/lib/tiers.ts";
import { piVersions } from "./scripts/pi-versions.ts";
import { patience } from "./test/helpers/patience.ts";
import LongestFirst from "./test/setup/sequencer.ts";

// scripts/test.ts sets these. Without a tier, every test can be chosen.
const { PI_RPCD_TEST_TIER: tier, PI_RPCD_TEST_ALL: all } = process.env;

export default defineConfig({
  test: {
    globalSetup: ["test/setup/global.ts"],
    pool: "forks",
    // One more than the processors of the smallest machine: the tests wait for a third of their time.
    maxWorkers: 3,
    sequence: { sequencer: LongestFirst },
    // No test may depend on being fast: these only end one that hangs.
    testTimeout: 600_000,
    hookTimeout: 600_000,
    teardownTimeout: 120_000,
    expect: { poll: patience },
    // A result or an error that breaks the method table ends the daemon that gave it.
    env: { PI_RPCD_VALIDATE: "1" },
    projects: testProjects(tier as Tier | undefined, { onEach: all === "1" })
      .filter(({ name }) => missingPrograms(name).length === 0)
      .map(({ name, include, exclude, pi }) => ({
        extends: true as const,
        test: {
          name,
          include: [...include],
          exclude: [...exclude],
          // Loading the modules again for each file would be a sixth of the work, and no test may depend on it.
          isolate: false,
          // Node runs the TypeScript itself, as it does in a checkout: no module is transformed.
          ...(name !== "unit" && { experimental: { viteModuleRunner: false } }),
          env: pi === undefined ? {} : { PI_RPCD_TEST_PI: piVersions[pi], PI_RPCD_TEST_PI_VERSION: pi },
        },
      })),
    coverage: {
      provider: "v8",
      include: ["{cli,client,extension,protocol,provider,server}/**/*.ts"],
    },
  },
});
