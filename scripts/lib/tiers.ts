import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";
import { piVersions } from "../pi-versions.ts";

// Which tests `npm test` runs, and which `npm run test:deep` runs. Together they run every test.

export type Tier = "quick" | "deep";

type Version = keyof typeof piVersions;

/** The end-to-end tests of the quick tier, with the newest pi. */
export const smokeTests = [
  "test/e2e/cli/once/round-trip.test.ts",
  "test/e2e/dialogs.test.ts",
  "test/e2e/hibernation.test.ts",
  "test/e2e/main-job.test.ts",
  "test/e2e/once/curl.test.ts",
  "test/e2e/reconnect/once/restart.test.ts",
  "test/e2e/sessions.test.ts",
];

/** Tests of generated or very large input, and of slow peers: too long for the quick tier. */
export const longTests = [
  "test/contract/edge/bad-links.test.ts",
  "test/contract/edge/slow-readers.test.ts",
  "test/contract/tokens/limits.test.ts",
  "test/unit/context/estimator-accuracy.test.ts",
  "test/unit/context/hostile-document.test.ts",
  "test/unit/context/property.test.ts",
  "test/unit/context/round-trip.test.ts",
  "test/unit/edge/slow-clients.test.ts",
  "test/unit/rpc/specification.test.ts",
  "test/unit/web/blocks.test.ts",
];

/** These faults are in a program that replaces pi, or come from outside, so the version of pi makes no difference. */
const independentFaults = "test/faults/{fake,hostile}/**";

/** Tests that need a pi, but whose result does not depend on its version. */
const onceTests = "test/**/once/**";

export interface TestProject {
  readonly name: string;
  readonly include: readonly string[];
  readonly exclude: readonly string[];
  /** The version of pi that the tests use. */
  readonly pi?: Version;
}

const versions = Object.keys(piVersions) as [Version, ...Version[]];
const newest = versions.at(-1) ?? versions[0];

interface ProjectOptions {
  /** Runs the tests in folders `once/` with each version of pi, instead of only with the newest. */
  readonly onEach?: boolean;
}

/** The tests of a folder in a tier, or in both. */
function withoutPi(name: "unit" | "contract", tier: Tier | undefined): TestProject {
  const long = longTests.filter((file) => file.startsWith(`test/${name}/`));
  const all = [`test/${name}/**/*.test.ts`];
  return { name, include: tier === "deep" ? long : all, exclude: tier === "quick" ? long : [] };
}

const faults = { name: "faults", include: [`${independentFaults}/*.test.ts`], exclude: [] };

/** The projects of a tier, or of both, including those whose programs are missing here. */
export function testProjects(tier: Tier | undefined, { onEach = false }: ProjectOptions = {}): readonly TestProject[] {
  const withPi = versions.flatMap((pi): TestProject[] => {
    const isNewest = pi === newest;
    if (tier === "quick") return isNewest ? [{ name: `pi-${pi}`, include: smokeTests, exclude: [], pi }] : [];
    const exclude = [
      independentFaults,
      ...(isNewest || onEach ? [] : [onceTests]),
      ...(isNewest && tier === "deep" ? smokeTests : []),
    ];
    return [{ name: `pi-${pi}`, include: ["test/{integration,e2e,faults}/**/*.test.ts"], exclude, pi }];
  });
  const folders = (["unit", "contract"] as const).map((name) => withoutPi(name, tier));
  if (tier === "quick") return [...folders, ...withPi];
  const withPrograms = Object.keys(programs).map(
    (name): TestProject => ({ name, include: [`test/${name}/**/*.test.ts`], exclude: [], pi: newest }),
  );
  return [...folders, faults, ...withPi, ...withPrograms];
}

/** Programs that npm does not bring, by the project that needs them, with their Debian packages. */
export const programs: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  editors: { emacs: "emacs-nox", nvim: "neovim" },
  screen: { chromium: "chromium", "firefox-esr": "firefox-esr", tmux: "tmux" },
};

/** A sentence for each program that a project needs and that is not on PATH. */
export function missingPrograms(project: string): readonly string[] {
  return Object.entries(programs[project] ?? {})
    .filter(([program]) => pathOf(program) === undefined)
    .map(([program, name]) => `${program} is missing (Debian package ${name})`);
}

/** The file that runs as a program, by PATH. */
export function pathOf(program: string): string | undefined {
  const files = (process.env["PATH"] ?? "").split(delimiter).map((folder) => join(folder, program));
  return files.find((file) => {
    try {
      accessSync(file, constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}
