import { parseArgs } from "node:util";
import { TreesPi, type TreesReport, treeServices } from "../test/helpers/trees-through-pi.ts";
import { ensurePi, piVersions } from "./pi-versions.ts";

const help = `npm run trees -- [options]

Creates random conversations with flaws, prepares each for a model, runs a real pi with the session files, and
fails if a strict service refuses a request, or if a request differs from the prepared one.

  --seed N       the first seed (default: random)
  --count N      the number of seeds (default: 200)
  --pi VERSION   ${Object.keys(piVersions).join(" or ")} (default: each)
  --service NAME ${treeServices.join(", ")} (default: each)
`;

const { values } = parseArgs({
  options: {
    seed: { type: "string" },
    count: { type: "string", default: "200" },
    pi: { type: "string" },
    service: { type: "string" },
    help: { type: "boolean", default: false },
  },
});

function number(name: string, text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 0) throw new Error(`--${name} takes a whole number, not "${text}"`);
  return value;
}

function chosen<T extends string>(name: string, known: readonly T[], wanted: string | undefined): readonly T[] {
  if (wanted === undefined) return known;
  const found = known.filter((each) => each === wanted);
  if (found.length === 0) throw new Error(`--${name} takes ${known.join(" or ")}`);
  return found;
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

function tell(where: string, { sent, repairs, failures }: TreesReport): void {
  const repaired = Object.values(repairs).reduce((sum, times) => sum + times, 0);
  say(
    `${where}: ${sent} trees, ${repaired} repairs by ${Object.keys(repairs).length} rules, ${failures.length} failed`,
  );
  for (const { seed, faults, differences } of failures) say([`seed ${seed}`, ...faults, ...differences].join("\n  "));
}

async function main(): Promise<void> {
  const versions = chosen("pi", Object.keys(piVersions) as (keyof typeof piVersions)[], values.pi);
  const services = chosen("service", treeServices, values.service);
  const seed = values.seed === undefined ? Date.now() % 1_000_000_000 : number("seed", values.seed);
  const count = number("count", values.count);
  ensurePi();
  say(`seeds ${seed} to ${seed + count - 1}`);
  for (const version of versions) {
    await using trees = await TreesPi.start(piVersions[version]);
    for (const service of services) {
      const report = await trees.through(
        service,
        Array.from({ length: count }, (_, index) => seed + index),
      );
      tell(`pi ${version}, ${service}`, report);
      if (report.failures.length > 0 || report.sent === 0) process.exitCode = 1;
    }
  }
}

if (values.help) process.stdout.write(help);
else await main();
