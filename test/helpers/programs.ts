import { join } from "node:path";

// The command line and the helper that tests start in processes of their own: those of the sources, or those of dist/ if
// `scripts/test.ts` has built it for this run, as users install them. A daemon inside a test's process is of the sources.

const root = join(import.meta.dirname, "..", "..");
const isBuilt = process.env["PI_RPCD_TEST_BUILT"] === "1";

function fileOf(module: string): string {
  return isBuilt ? join(root, "dist", `${module}.js`) : join(root, `${module}.ts`);
}

/** The command line's file. */
export const main = fileOf("cli/main");
/** The file of the program that front ends start instead of pi. */
export const dropInMain = fileOf("cli/rpc/main");
/** The extension that a daemon loads into pi. */
export const helper = fileOf("extension/index");

/** Runs the command line with the words that follow. */
export const program = [process.execPath, "--disable-warning=ExperimentalWarning", main] as const;
