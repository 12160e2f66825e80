import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { type FigureName, figures, isFigureName } from "./figures.ts";
import type { Figure, Measured } from "./lib/figure.ts";
import { format, type ReportedFigure, report } from "./lib/report.ts";
import { run } from "./lib/run.ts";

const usage = `Measures the built daemon against plain readers of the same children, in ratios within one run.

usage: npm run bench -- [NAME…] [--json] [--repetitions N] [--dist DIRECTORY] [--pi VERSION]

  --json             print one JSON document
  --repetitions N    values for each row (default: as each figure says)
  --dist DIRECTORY   measure this build instead of building
  --pi VERSION       for figures that use one pi (default: the newest)

${Object.entries(figures)
  .map(([name, { title }]) => `  ${name.padEnd(16)} ${title}`)
  .join("\n")}
`;

const root = join(import.meta.dirname, "..");

function argumentsOf() {
  try {
    return parseArgs({
      allowPositionals: true,
      options: {
        json: { type: "boolean" },
        help: { type: "boolean" },
        repetitions: { type: "string" },
        dist: { type: "string" },
        pi: { type: "string" },
      },
    });
  } catch (error) {
    return fail(`${(error as Error).message}\n\n${usage}`);
  }
}

function fail(message: string): never {
  process.stderr.write(`${message.trimEnd()}\n`);
  process.exit(2);
}

async function build(): Promise<string> {
  const script = join(root, "scripts", "build.ts");
  const compiler = [join(root, "node_modules", "typescript", "bin", "tsc"), "-p", "tsconfig.build.json"];
  const { code } = await run(process.execPath, existsSync(script) ? [script] : compiler, { stdout: 2 });
  if (code !== 0) fail("The build failed; its messages are above.");
  return join(root, "dist");
}

async function measure(name: FigureName, dist: string): Promise<ReportedFigure> {
  const figure: Figure = figures[name];
  const repetitions = values.repetitions ?? String(figure.repetitions);
  const script = join(import.meta.dirname, "figure-process.ts");
  const args = [...process.execArgv, script, name, dist, repetitions];
  const { code, output } = await run(process.execPath, args, { stdout: "pipe" });
  if (code !== 0) fail(`The figure "${name}" failed; its messages are above.`);
  return report(name, figure.title, JSON.parse(output) as Measured);
}

const { values, positionals } = argumentsOf();
if (values.help === true) {
  process.stdout.write(usage);
  process.exit(0);
}
if (values.repetitions !== undefined && !/^[1-9]\d{0,3}$/.test(values.repetitions))
  fail("--repetitions takes a number of at least 1.");
if (values.pi !== undefined) process.env["PI_RPCD_BENCH_PI"] = values.pi;
const unknown = positionals.find((name) => !isFigureName(name));
if (unknown !== undefined) fail(`Unknown figure "${unknown}".\n\n${usage}`);
const wanted = positionals.length > 0 ? positionals : Object.keys(figures);
const dist = values.dist === undefined ? await build() : resolve(values.dist);
const reported: ReportedFigure[] = [];
for (const name of wanted.filter(isFigureName)) {
  const figure = await measure(name, dist);
  reported.push(figure);
  if (values.json !== true) process.stdout.write(`${format(figure)}\n`);
}
if (values.json === true)
  process.stdout.write(`${JSON.stringify({ node: process.version, figures: reported }, null, 2)}\n`);
