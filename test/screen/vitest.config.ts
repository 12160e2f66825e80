import { join } from "node:path";
import { defineConfig } from "vitest/config";
import { piVersions } from "../../scripts/pi-versions.ts";

// `npm run test:screen`: real browsers and terminals, with the newest pi.
const [version, cli] = Object.entries(piVersions).at(-1) ?? [];

export default defineConfig({
  test: {
    name: "screen",
    root: join(import.meta.dirname, "..", ".."),
    include: ["test/screen/**/*.test.ts"],
    globalSetup: ["test/setup/global.ts"],
    pool: "forks",
    maxWorkers: 2,
    testTimeout: 120_000,
    hookTimeout: 60_000,
    teardownTimeout: 30_000,
    expect: { poll: { timeout: 20_000 } },
    env: { PI_RPCD_TEST_PI: cli ?? "", PI_RPCD_TEST_PI_VERSION: version ?? "" },
  },
});
