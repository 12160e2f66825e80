import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { type FigureName, figures, isFigureName } from "./figures.ts";
import { defaultDeadlineSeconds, type Figure } from "./lib/figure.ts";
import { type Load, machineLoad } from "./lib/load.ts";
import { format, formatGoals, type Outcome, type ReportedFigure, report, reportGoals } from "./lib/report.ts";
import { run } from "./lib/run.ts";

const usage = `Measures the built daemon against plain readers of the same children, in ratios within one run.

usage: npm run bench -- [NAME…] [--goals] [--json] [--repetitions N] [--dist DIRECTORY] [--pi VERSION] [--only PATTERN]
                        [--opencode FILE]

Without a name: every figure that is timed, which takes about 20 minutes, and more on a slow machine. Figures that count
tokens run when named.

  --goals            print every goal with its values, instead of the figures; runs the timed figures that have goals
  --json             print one JSON document
  --repetitions N    values for each row (default: as each figure says)
  --dist DIRECTORY   measure this build instead of building
  --pi VERSION       for figures that use one pi (default: the newest)
  --only PATTERN     of the figures "lean" and "lean-parts", the cells whose name matches, for example "200k, Anthropic"
  --opencode FILE    the executable of opencode, to compare with

${Object.entries(figures)
  .map(([name, { title }]) => `  ${name.padEnd(20)} ${title}`)
  .join("\n")}
`;

const root = join(import.meta.dirname, "..");
/** After a figure's own deadline, for a process that does not respond. */
const killAfterSeconds = 60;

function argumentsOf() {
  try {
    return parseArgs({
      allowPositionals: true,
      options: {
        goals: { type: "boolean" },
        json: { type: "boolean" },
        help: { type: "boolean" },
        repetitions: { type: "string" },
        dist: { type: "string" },
        pi: { type: "string" },
        only: { type: "string" },
        opencode: { type: "string" },
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
  const { code } = await run(process.execPath, [join(root, "scripts", "build.ts")], { stdout: 2 });
  if (code !== 0) fail("The build failed; its messages are above.");
  return join(root, "dist");
}

async function measure(name: FigureName, dist: string): Promise<Outcome> {
  const { repetitions, deadlineSeconds = defaultDeadlineSeconds }: Figure = figures[name];
  const { only, opencode } = values;
  const setting = { dist, repetitions: Number(values.repetitions ?? repetitions), only, opencode };
  const script = join(import.meta.dirname, "figure-process.ts");
  const args = [...process.execArgv, script, name, JSON.stringify(setting)];
  const killAfterMs = (deadlineSeconds + killAfterSeconds) * 1_000;
  const { code, output } = await run(process.execPath, args, { stdout: "pipe", killAfterMs });
  if (code === 0) return JSON.parse(output) as Outcome;
  return { kind: "failed", reason: `its process ended with code ${code}` };
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
const timed = Object.keys(figures)
  .filter(isFigureName)
  .filter((name) => (figures[name] as Figure).isCounted !== true);
const withGoals = timed.filter((name) => (figures[name] as Figure).goals.length > 0);
const wanted = positionals.length > 0 ? positionals.filter(isFigureName) : values.goals === true ? withGoals : timed;
const dist = values.dist === undefined ? await build() : resolve(values.dist);
if (!existsSync(join(dist, "cli", "main.js"))) fail(`${dist} is not a build: it has no cli/main.js.`);

const reported: ReportedFigure[] = [];
const startedAt = performance.now();
let before: Load = await machineLoad();
for (const name of wanted) {
  const figureStartedAt = performance.now();
  const outcome = await measure(name, dist);
  const seconds = (performance.now() - figureStartedAt) / 1_000;
  const after = await machineLoad();
  const { title, goals }: Figure = figures[name];
  const figure = report({ name, title, goals, load: { before, after }, seconds }, outcome);
  before = after;
  reported.push(figure);
  if (values.json === true) continue;
  if (values.goals === true)
    process.stderr.write(`${name}: ${figure.failure ?? "measured"} (${seconds.toFixed(0)} s)\n`);
  else process.stdout.write(`${format(figure)}\n`);
}
const seconds = (performance.now() - startedAt) / 1_000;
const goals = reportGoals(reported);
if (values.json === true) {
  const document = { node: process.version, dist, seconds, goals, figures: reported };
  process.stdout.write(`${JSON.stringify(document, null, 2)}\n`);
} else if (values.goals === true) process.stdout.write(formatGoals(goals));
if (values.json !== true) process.stdout.write(`The whole took ${seconds.toFixed(0)} s.\n`);
if (reported.some(({ failure }) => failure !== undefined)) process.exitCode = 1;
