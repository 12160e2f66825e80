import type { ScriptedName } from "../../../provider/agent-dir.ts";
import type { Resources, Setting } from "../figure.ts";
import { chosenPi } from "../real-pi.ts";
import { startTraceStage, type TraceRun } from "./run.ts";
import type { Spending } from "./script.ts";
import { type Bill, billOf, type Prices } from "./spending.ts";

interface Service {
  readonly provider: ScriptedName;
  readonly prices: Prices;
  /** As pi's models have it. Seconds. */
  readonly promptCache?: { readonly short: number; readonly long: number };
}

/** A service that charges for cache writes, and one that caches automatically. */
const services = {
  Anthropic: {
    provider: "scripted-anthropic",
    prices: { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75 },
    promptCache: { short: 300, long: 3_600 },
  },
  OpenAI: { provider: "scripted", prices: { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 0 } },
} as const satisfies Readonly<Record<string, Service>>;
export type ServiceName = keyof typeof services;
export const serviceNames = Object.keys(services) as ServiceName[];

/** Number of parallel sessions; the counts do not depend on it. */
const atOnce = 2;

/** A session with one trace at one service. */
export interface TraceCase extends Omit<TraceRun, "provider"> {
  readonly service: ServiceName;
  /** In tokens. Default: the scripted provider's. */
  readonly contextWindow?: number | undefined;
}

export interface TraceOutcome {
  readonly bill: Bill;
  readonly spending: Spending;
}

/** Runs all cases, each on a model of its own. Returns the outcomes by the ids of the cases. */
export async function runCases(
  cases: readonly TraceCase[],
  setting: Setting,
  resources: Resources,
): Promise<(id: string) => TraceOutcome> {
  const models = new Map(
    cases.map(({ id, service, contextWindow }) => {
      const { prices: cost, promptCache }: Service = services[service];
      return [id, { cost, contextWindow, promptCache }];
    }),
  );
  const stage = await startTraceStage(chosenPi(), models, setting, resources);
  const left = [...cases];
  const outcomes = new Map<string, TraceOutcome>();
  const worker = async (): Promise<void> => {
    for (let next = left.shift(); next !== undefined; next = left.shift()) {
      const { provider, prices } = services[next.service];
      const spending = await stage.run({ ...next, provider });
      outcomes.set(next.id, { spending, bill: billOf(spending, prices) });
    }
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
  return (id) => {
    const found = outcomes.get(id);
    if (found === undefined) throw new Error(`No case has the id ${id}.`);
    return found;
  };
}

/** An id for a case, as the name of its model. */
export function caseId(...parts: readonly (string | number)[]): string {
  return parts.join("-").replaceAll(/[^\w-]+/g, "-");
}

/** Rounds a number to its significant digits. */
export function fixed(value: number, digits = 3): number {
  return Number(value.toFixed(digits));
}
