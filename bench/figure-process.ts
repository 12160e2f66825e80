import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ResourceStack } from "../server/lib/resource-stack.ts";
import { figures, isFigureName } from "./figures.ts";
import { pendingWaits, within } from "./lib/deadline.ts";
import { defaultDeadlineSeconds, type Figure, type Setting } from "./lib/figure.ts";
import type { Outcome } from "./lib/report.ts";

// Measures one figure in this process and writes the outcome to stdout as JSON. Started by main.ts.
const [name = "", given = ""] = process.argv.slice(2);
if (!isFigureName(name)) throw new Error(`Unknown figure "${name}".`);

const figure: Figure = figures[name];
const resources = new ResourceStack();
// A short path, because the path of the daemon's socket must fit the system's limit.
const directory = resources.add(mkdtempSync(join(tmpdir(), "pi-bench-")), (made) =>
  rmSync(made, { recursive: true, force: true, maxRetries: 5 }),
);
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.on(signal, () => void resources.release().finally(() => process.exit(1)));
}
let outcome: Outcome;
try {
  const setting: Setting = { ...(JSON.parse(given) as Omit<Setting, "directory">), directory };
  const waited = (): string => `the figure, which waited for ${pendingWaits().slice(1).join(", ") || "nothing named"}`;
  const { deadlineSeconds = defaultDeadlineSeconds } = figure;
  const measured = await within(deadlineSeconds, waited, figure.measure(setting, resources));
  outcome = { kind: "measured", measured };
} catch (error) {
  process.stderr.write(`${name}: ${(error as Error).stack}\n`);
  outcome = { kind: "failed", reason: (error as Error).message };
}
const released = resources.release().catch((error: unknown) => void process.stderr.write(`${String(error)}\n`));
await within(45, "the release of the figure's processes", released).catch((error: unknown) =>
  process.stderr.write(`${String(error)}\n`),
);
process.stdout.write(JSON.stringify(outcome), () => process.exit(0));
