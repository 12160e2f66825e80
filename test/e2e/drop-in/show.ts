import { parseArgs } from "node:util";
import { piVersions } from "../../../scripts/pi-versions.ts";
import { dropInProgram, type Program, piProgram } from "./program.ts";
import { describeRecord } from "./records.ts";
import type { Scenario } from "./scenario.ts";
import { scenarios } from "./scenarios/all.ts";
import { difference, type Run, runScenario } from "./twins.ts";

const usage = `Plays scenarios with pi and with another program, and prints the records of both and their first difference.

usage: node --disable-warning=ExperimentalWarning test/e2e/drop-in/show.ts [OPTIONS] [PART OF A NAME] [-- COMMAND…]

  --pi VERSION      0.87.1 (the default) or 1.5.2
  --only NAME       pi or other: runs one of them
  --self            the other program is pi again
  --drop-in         COMMAND is a drop-in: it gets a daemon, and its differences are allowed
  --full            prints whole records
  --quiet           prints differences only
  --times N         plays each scenario so often
  --patience MS     how long each step may take. Default 10000
  --list            lists the names

Without COMMAND the other program is cli/rpc/main.ts. TWIN_LOG_LEVEL=debug prints the daemon's log on stderr.
`;

const { values, positionals } = parseArgs({
  args: process.argv.slice(2).slice(0, commandAt() === -1 ? undefined : commandAt()),
  allowPositionals: true,
  options: {
    pi: { type: "string", default: "0.87.1" },
    only: { type: "string" },
    self: { type: "boolean", default: false },
    "drop-in": { type: "boolean", default: false },
    full: { type: "boolean", default: false },
    quiet: { type: "boolean", default: false },
    times: { type: "string", default: "1" },
    patience: { type: "string", default: "10000" },
    list: { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
});

function commandAt(): number {
  return process.argv.slice(2).indexOf("--");
}

const print = (text: string): boolean => process.stdout.write(`${text}\n`);

const cli = piVersions[values.pi as keyof typeof piVersions];
const chosen = scenarios.filter(({ name }) => name.includes(positionals.join(" ")));
if (values.list) print(scenarios.map(({ name }) => name).join("\n"));
else if (values.help || cli === undefined || chosen.length === 0) print(usage);
else process.exitCode = await show();

async function show(): Promise<number> {
  let different = 0;
  for (const scenario of chosen) {
    for (let time = 1; time <= Number(values.times); time += 1) {
      const startedAt = performance.now();
      const runs = await Promise.all(programs().map((program) => playWith(scenario, program)));
      if (!values.quiet) for (const run of runs) printRun(run);
      const [one, other] = runs;
      const found = one === undefined || other === undefined ? one?.problem : difference(one, other);
      if (found !== undefined) different += 1;
      const tookMs = (performance.now() - startedAt).toFixed(0);
      if (found !== undefined || !values.quiet) print(`${scenario.name} (${tookMs} ms): ${found ?? "no difference"}\n`);
    }
  }
  print(`${chosen.length} scenarios, ${different} differences`);
  return different === 0 ? 0 : 1;
}

function programs(): readonly Program[] {
  const [pi, other] = [piProgram(cli), otherProgram()];
  if (values.only === "pi") return [pi];
  return values.only === "other" ? [other] : [pi, other];
}

function otherProgram(): Program {
  if (values.self) return { ...piProgram(cli), name: "pi again" };
  const at = commandAt();
  if (at === -1) return dropInProgram(cli);
  const command = process.argv.slice(2).slice(at + 1);
  return values["drop-in"] ? { ...dropInProgram(cli), command } : { name: "other", isDropIn: false, command };
}

function playWith(scenario: Scenario, program: Program): Promise<Run> {
  return runScenario(scenario, program, { patienceMs: Number(values.patience) });
}

function printRun({ program, records, stderr, exit }: Run): void {
  print(`== ${program}: exit ${exit}${stderr === "" ? "" : `, stderr ${JSON.stringify(stderr)}`}`);
  for (const [index, record] of records.entries()) {
    print(`${String(index + 1).padStart(4)} ${values.full ? JSON.stringify(record) : describeRecord(record)}`);
  }
}
