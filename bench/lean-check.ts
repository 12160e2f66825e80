import { createInterface } from "node:readline/promises";
import { parseArgs } from "node:util";
import { Cleanup } from "../cli/cleanup.ts";
import { startTemporaryDaemon } from "../cli/demo/temporary-daemon.ts";
import { createWorkspace } from "../cli/demo/workspace.ts";
import { CommandError } from "../cli/errors.ts";
import { type Client, connect } from "../client/index.ts";
import { type CheckPlan, check, estimatePlanUsd, type Prices } from "./lib/lean-check/check.ts";
import { type TaskName, taskNames } from "./lib/lean-check/tasks.ts";
import { rule, tableOf, type Verdict, verdictOf, verdictText } from "./lib/lean-check/verdict.ts";
import { tableLines } from "./lib/report.ts";

const usage = `Compares the profile lean with bare pi on tasks with long context, with real models.

usage: npm run check:lean -- --model PROVIDER/ID [--model …] [--task NAME …] [--repetitions N] [--budget USD]
                             [--seed N] [--scale N] [--pi PATH] [--yes] [--json] [--keep]

  --model PROVIDER/ID  a model that pi has a login or a key for, and prices
  --task NAME          ${taskNames.join(", ")} (default: all)
  --repetitions N      pairs of sessions for each model and task (default: 3)
  --budget USD         the check ends when it is used (default: 20)
  --seed N             what the tasks are made from (default: 1)
  --scale N            the size of the tasks, more than 0 and at most 1, to try the check (default: 1)
  --pi PATH            another pi than the daemon's own choice
  --yes                begin without a question
  --json               print one JSON document
  --keep               keep the tasks' and the sessions' files

pi finds its keys as usual: in the environment, or by its logins. The sessions run in a daemon of their own and have
pi's settings, but no extensions, skills or context files. As always, the model's commands run with your rights. The
estimate is for sessions that need as many requests as expected. A session ends at four times as many, or when it has
cost twice as much as without the provider's cache.

${rule}

exit code: 0 lean may become the default, 1 it may not, 2 wrong usage, 3 nothing is decided
`;

const exitCodes = { yes: 0, no: 1, undecided: 3 } as const satisfies Record<Verdict["decision"], number>;

/** A check that cannot begin. */
class Refused extends Error {}

function fail(message: string): never {
  throw new Refused(message);
}

function argumentsOf() {
  try {
    return parseArgs({
      options: {
        model: { type: "string", multiple: true },
        task: { type: "string", multiple: true, default: taskNames },
        repetitions: { type: "string", default: "3" },
        budget: { type: "string", default: "20" },
        seed: { type: "string", default: "1" },
        scale: { type: "string", default: "1" },
        pi: { type: "string" },
        yes: { type: "boolean", default: false },
        json: { type: "boolean", default: false },
        keep: { type: "boolean", default: false },
        help: { type: "boolean", default: false },
      },
    }).values;
  } catch (error) {
    return fail(`${(error as Error).message}\n\n${usage}`);
  }
}

function number(name: "repetitions" | "budget" | "seed" | "scale", most: number): number {
  const value = Number(values[name]);
  const isWhole = name === "repetitions" || name === "seed";
  if (!(value > 0 && value <= most) || (isWhole && !Number.isInteger(value)))
    fail(`--${name} takes a ${isWhole ? "whole number" : "number"} above 0, at most ${most}.`);
  return value;
}

/** The prices of the models, from pi. A model without prices could not keep the budget. */
async function pricesOf(client: Client, names: readonly string[]): Promise<ReadonlyMap<string, Prices>> {
  const { models } = await client.listModels();
  return new Map(
    names.map((name) => {
      const model = models.find(({ provider, id }) => `${provider}/${id}` === name);
      if (model === undefined) fail(`pi has no model ${name}, or no login or key for it.`);
      const prices = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, ...model.cost };
      if (!(prices.input > 0 && prices.output > 0)) fail(`pi knows no price of ${name}, so no budget could be kept.`);
      return [name, prices];
    }),
  );
}

async function confirm(signal: AbortSignal): Promise<boolean> {
  if (values.yes) return true;
  if (process.stdin.isTTY !== true) fail("Nothing was sent. --yes begins without a terminal.");
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  const answer = await terminal.question("Begin? [y/N] ", { signal }).catch(() => "");
  terminal.close();
  return /^y(es)?$/i.test(answer.trim());
}

/** The daemon's environment: the user's, with the keys, but without the settings of the user's daemon. */
function environment(): NodeJS.ProcessEnv {
  const kept = new Set(["PI_RPCD_PI", "PI_RPCD_VALIDATE"]);
  return Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !name.startsWith("PI_RPCD_") || kept.has(name)),
  );
}

async function run(names: readonly string[]): Promise<number> {
  const unknown = values.task.find((name) => !(taskNames as readonly string[]).includes(name));
  if (unknown !== undefined) fail(`Unknown task "${unknown}". --task takes ${taskNames.join(", ")}.`);
  const given = {
    ...{ repetitions: number("repetitions", 1_000), budgetUsd: number("budget", 1_000_000) },
    ...{ seed: number("seed", 1_000_000), scale: number("scale", 1) },
  };
  const interrupt = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => interrupt.abort());
  const { signal } = interrupt;
  const say = (line: string): void => void (values.json ? process.stderr : process.stdout).write(`${line}\n`);
  const workspace = createWorkspace("pi-rpcd-lean-");
  const cleanup = new Cleanup();
  cleanup.add(() => (values.keep ? say(`kept: ${workspace.root}`) : workspace.remove()));
  try {
    await startTemporaryDaemon({ workspace, pi: values.pi, env: environment(), cleanup, signal });
    const client = await connect({ stateDir: workspace.stateDir, name: "check:lean", signal });
    cleanup.add(() => client.close());
    const plan: CheckPlan = {
      ...{ ...given, models: await pricesOf(client, names), tasks: values.task as TaskName[] },
      ...{ root: workspace.cwd, signal, say },
    };
    const { version } = (await client.info()).pi;
    const pairs = plan.models.size * plan.tasks.length * plan.repetitions;
    say(`rule: ${rule}`);
    say(`plan: ${pairs} pairs of sessions, seed ${plan.seed}, scale ${plan.scale}, pi ${version}`);
    say(`estimate: ${estimatePlanUsd(plan).toFixed(2)} USD; the check ends at its budget of ${plan.budgetUsd} USD`);
    if (!(await confirm(signal))) return exitCodes.undecided;
    const result = await check(client, plan);
    const verdict = verdictOf(result.pairs);
    if (values.json) process.stdout.write(`${JSON.stringify({ ...result, verdict }, undefined, 2)}\n`);
    if (result.pairs.length > 0) say(tableLines(tableOf(result.pairs)).join("\n"));
    if (result.incomplete !== undefined) say(`incomplete: ${result.incomplete}`);
    say(`spent: ${result.spentUsd.toFixed(4)} USD`);
    say(verdictText(verdict));
    return exitCodes[verdict.decision];
  } finally {
    await cleanup.run();
  }
}

async function main(): Promise<number> {
  if (values.help) {
    process.stdout.write(usage);
    return 0;
  }
  if (values.model === undefined) fail(`--model is missing.\n\n${usage}`);
  return await run([...new Set(values.model)]);
}

let values: ReturnType<typeof argumentsOf>;
try {
  values = argumentsOf();
  process.exitCode = await main();
} catch (error) {
  if (!(error instanceof Refused || error instanceof CommandError)) throw error;
  process.stderr.write(`${error.message.trimEnd()}\n`);
  process.exitCode = 2;
}
