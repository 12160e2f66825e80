import { join } from "node:path";
import type { Client } from "../../../client/index.ts";
import { runSession, type SessionOutcome } from "./session.ts";
import { makeTask, type Task, type TaskName } from "./tasks.ts";
import { hasFailed, type Pair } from "./verdict.ts";

/** USD per million tokens. */
export interface Prices {
  readonly input: number;
  readonly output: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
}

export interface CheckPlan {
  /** By `provider/id`. */
  readonly models: ReadonlyMap<string, Prices>;
  readonly tasks: readonly TaskName[];
  readonly repetitions: number;
  readonly budgetUsd: number;
  readonly seed: number;
  readonly scale: number;
  /** For the tasks' files and the sessions' files. */
  readonly root: string;
  readonly signal: AbortSignal;
  /** Gets a line for each session. */
  readonly say: (line: string) => void;
}

export interface CheckResult {
  readonly pairs: readonly Pair[];
  /** Of the sessions that were not interrupted, also those of incomplete pairs. */
  readonly spentUsd: number;
  /** Why pairs are missing; undefined if none is. */
  readonly incomplete: string | undefined;
}

const outputTokensPerRequest = 200;

/** What a session with bare pi costs if it needs what the task expects. */
export function estimateUsd({ expected: { requests, contextTokens } }: Task, prices: Prices): number {
  const read = (requests * contextTokens * (prices.cacheRead || prices.input)) / 2;
  const written = contextTokens * Math.max(prices.input, prices.cacheWrite);
  return (read + written + requests * outputTokensPerRequest * prices.output) / 1_000_000;
}

/** What a session may cost: twice as much as expected at a service without a cache. */
function limitUsd(task: Task, prices: Prices): number {
  return 2 * estimateUsd(task, { ...prices, cacheRead: 0 });
}

/** For the whole plan: both sessions of each pair count as with bare pi. */
export function estimatePlanUsd(plan: CheckPlan): number {
  return steps(plan).reduce((usd, { task, prices }) => usd + 2 * estimateUsd(task, prices), 0);
}

interface Step {
  readonly model: string;
  readonly prices: Prices;
  readonly name: TaskName;
  readonly task: Task;
  readonly order: readonly ["bare", "lean"] | readonly ["lean", "bare"];
}

/** The repetitions are outermost, so that a check that ends early has pairs of every model and task. */
function steps({ models, tasks, repetitions, seed, scale }: CheckPlan): readonly Step[] {
  return Array.from({ length: repetitions }, (_, repetition) =>
    tasks.flatMap((name, taskAt) => {
      const task = makeTask(name, { seed: seed + repetition, scale });
      return [...models].map(([model, prices], modelAt): Step => {
        const isBareFirst = (repetition + taskAt + modelAt) % 2 === 0;
        return { model, prices, name, task, order: isBareFirst ? ["bare", "lean"] : ["lean", "bare"] };
      });
    }),
  ).flat();
}

/** Runs each task without and with `lean`, in alternating order, until all are done or the budget is used. */
export async function check(client: Client, plan: CheckPlan): Promise<CheckResult> {
  const pairs: Pair[] = [];
  const dropped = new Map<string, string>();
  const spending = { usd: 0 };
  let ended: string | undefined;
  for (const [at, step] of steps(plan).entries()) {
    if (dropped.has(step.model)) continue;
    const pair = await runPair(client, { plan, step, at, spending });
    if (typeof pair === "string") {
      ended = pair;
      break;
    }
    pairs.push(pair);
    if (hasFailed(pair.bare) && hasFailed(pair.lean)) dropped.set(step.model, pair.bare.fault ?? "");
  }
  const reasons = [...dropped].map(([model, fault]) => `${model} was left out, because both sessions failed: ${fault}`);
  const all = [...reasons, ...(ended === undefined ? [] : [ended])];
  return { pairs, spentUsd: spending.usd, incomplete: all.length === 0 ? undefined : all.join("; ") };
}

interface PairRun {
  readonly plan: CheckPlan;
  readonly step: Step;
  readonly at: number;
  readonly spending: { usd: number };
}

/** Returns why the check ends, if the pair is not complete. */
async function runPair(client: Client, { plan, step, at, spending }: PairRun): Promise<Pair | string> {
  const { budgetUsd, root, signal, say } = plan;
  const { model, prices, name, task, order } = step;
  const outcomes: { bare?: SessionOutcome; lean?: SessionOutcome } = {};
  const isUsed = `the budget of ${budgetUsd} USD is used`;
  for (const arm of order) {
    if (spending.usd >= budgetUsd) return isUsed;
    const title = `${model}, ${name}, ${arm === "lean" ? "lean" : "bare pi"}`;
    try {
      const outcome = await runSession(client, {
        ...{ task, model, signal, isLean: arm === "lean", sessionDir: join(root, "sessions") },
        // Of the same length, because the model's prompt has it.
        directory: join(root, `${String(at).padStart(4, "0")}-${arm}`),
        maxUsd: limitUsd(task, prices),
        budgetUsd: budgetUsd - spending.usd,
      });
      spending.usd += outcome.usd;
      say(`${title}: ${sessionText(outcome)}`);
      if (outcome.ended === "budget") return isUsed;
      outcomes[arm] = outcome;
    } catch (error) {
      return signal.aborted ? "interrupted" : `${title}: ${(error as Error).message}`;
    }
  }
  return { model, task: name, ...(outcomes as Required<typeof outcomes>) };
}

function sessionText({ fault, usd, requests, minutes }: SessionOutcome): string {
  const end = fault === undefined ? "solved" : `not solved (${fault})`;
  return `${end}; ${usd.toFixed(4)} USD, ${requests} requests, ${minutes.toFixed(1)} min`;
}
