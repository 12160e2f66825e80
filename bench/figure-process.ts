import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ResourceStack } from "../server/lib/resource-stack.ts";
import { figures, isFigureName } from "./figures.ts";
import type { Figure, Measured } from "./lib/figure.ts";

// Measures one figure in this process and writes the result to stdout as JSON. Started by main.ts.
const [name = "", dist = "", repetitions = ""] = process.argv.slice(2);
if (!isFigureName(name)) throw new Error(`Unknown figure "${name}".`);

const figure: Figure = figures[name];
const resources = new ResourceStack();
// A short path, because the path of the daemon's socket must fit the system's limit.
const directory = resources.add(mkdtempSync(join(tmpdir(), "pi-bench-")), (made) =>
  rmSync(made, { recursive: true, force: true }),
);
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.on(signal, () => void resources.release().finally(() => process.exit(1)));
}
let measured: Measured;
try {
  const setting = { dist, directory, repetitions: Number(repetitions) };
  measured = await figure.measure(setting, resources);
} finally {
  await resources.release();
}
process.stdout.write(JSON.stringify(measured));
