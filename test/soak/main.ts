import { parseArgs } from "node:util";
import { ensurePi, piVersions } from "../../scripts/pi-versions.ts";
import { reportText } from "./report.ts";
import { restoreReportText, restoreSoak } from "./restore/program.ts";
import { soak } from "./soak.ts";
import { canTrace } from "./store-faults.ts";

const help = `npm run soak -- [options]

Runs random deliveries with random faults, and fails when a receipt is wrong, a message is lost or doubled.

  --seed N       what the random numbers are made from (default: random)
  --minutes M    how long at least (default: 5)
  --pushes N     how many pushes at least (default: 0)
  --pi VERSION   ${Object.keys(piVersions).join(" or ")} (default: 1.5.2)
  --only REGEXP  only the operations, or the rounds, whose name matches
  --go-on        does not end at the first failure
  --restore      kills daemons while their sessions work, and compares what clients got with what pi wrote
  --kills N      with --restore: how many kills (default: 200)
  --sessions N   with --restore: how many sessions at a time (default: 3)
  --late         with --restore: changes are told late, so that kills come more often between a commit and its notification

Where strace is installed, syncs of the store's file fail too.
`;

const { values } = parseArgs({
  options: {
    seed: { type: "string" },
    minutes: { type: "string", default: "5" },
    pushes: { type: "string", default: "0" },
    pi: { type: "string", default: "1.5.2" },
    only: { type: "string" },
    "go-on": { type: "boolean", default: false },
    restore: { type: "boolean", default: false },
    kills: { type: "string", default: "200" },
    sessions: { type: "string", default: "3" },
    late: { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
});

function number(name: string, text: string): number {
  const value = Number(text);
  if (!Number.isFinite(value) || value < 0) throw new Error(`--${name} takes a number, not "${text}"`);
  return value;
}

if (values.help) process.stdout.write(help);
else {
  const version = values.pi as keyof typeof piVersions;
  if (!Object.hasOwn(piVersions, version)) throw new Error(`--pi takes ${Object.keys(piVersions).join(" or ")}`);
  ensurePi();
  const seed = values.seed === undefined ? Date.now() % 1_000_000_000 : number("seed", values.seed);
  process.stdout.write(`seed ${seed}\n`);
  const options = {
    seed,
    pi: { version, cli: piVersions[version] },
    endsAtFirst: !values["go-on"],
    ...(values.only === undefined ? {} : { only: new RegExp(values.only) }),
    say: (line: string) => process.stdout.write(`${line}\n`),
  };
  if (values.restore) {
    const [kills, sessions] = [number("kills", values.kills), number("sessions", values.sessions)];
    const report = await restoreSoak({ ...options, kills, sessions, tellsLate: values.late });
    process.stdout.write(`${restoreReportText(report)}\n`);
    process.exitCode = report.faults.length === 0 ? 0 : 1;
  } else {
    const report = await soak({
      ...options,
      seconds: number("minutes", values.minutes) * 60,
      pushes: number("pushes", values.pushes),
      withFileSystemFaults: canTrace(),
    });
    process.stdout.write(`${reportText(report)}\n`);
    process.exitCode = report.violations.length === 0 ? 0 : 1;
  }
}
