import type { ScriptedName } from "../../../provider/agent-dir.ts";
import type { Resources, Setting } from "../figure.ts";
import { chosenPi } from "../real-pi.ts";
import { startTraceStage, type TraceModel, type TraceResult, type TraceRun } from "./run.ts";
import { type Bill, billOf, type Prices } from "./spending.ts";

interface Service {
  readonly provider: ScriptedName;
  /** Its price and cache, for each model. */
  readonly model: Pick<TraceModel, "promptCache"> & { readonly cost: Prices };
}

/** A service that charges for cache writes, and one that caches automatically. */
const services = {
  Anthropic: {
    provider: "scripted-anthropic",
    model: {
      cost: { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75 },
      promptCache: { short: 300, long: 3_600 },
    },
  },
  OpenAI: { provider: "scripted", model: { cost: { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 0 } } },
} as const satisfies Readonly<Record<string, Service>>;
export type ServiceName = keyof typeof services;
export const serviceNames = Object.keys(services) as ServiceName[];

/** Number of parallel sessions; the counts do not depend on it. */
const atOnce = 2;

/** A session with one trace at one service. */
export interface TraceCase extends Omit<TraceRun, "provider">, Pick<TraceModel, "contextWindow" | "hasThreads"> {
  readonly service: ServiceName;
}

export interface TraceOutcome extends TraceResult {
  readonly bill: Bill;
}

/** Runs all cases, each on a model of its own. Returns the outcomes by the ids of the cases. */
export async function runCases(
  cases: readonly TraceCase[],
  setting: Setting,
  resources: Resources,
): Promise<(id: string) => TraceOutcome> {
  const models = new Map(cases.map(({ id, service, ...model }) => [id, { ...model, ...services[service].model }]));
  const stage = await startTraceStage(chosenPi(), models, setting, resources);
  const left = [...cases];
  const outcomes = new Map<string, TraceOutcome>();
  const worker = async (): Promise<void> => {
    for (let next = left.shift(); next !== undefined; next = left.shift()) {
      const { provider, model }: Service = services[next.service];
      const result = await stage.run({ ...next, provider });
      outcomes.set(next.id, { ...result, bill: billOf(result.spending, model.cost) });
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

/** Rounds a number to so many decimals. */
export function fixed(value: number, digits = 3): number {
  return Number(value.toFixed(digits));
}
