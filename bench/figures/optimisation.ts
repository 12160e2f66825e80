import { leanOptimisation } from "../../protocol/optimisation/config.ts";
import type { OptimisationOptions } from "../../protocol/optimisation/options.ts";
import type { ScriptedName } from "../../provider/agent-dir.ts";
import type { Figure, Resources, Row, Setting, Table } from "../lib/figure.ts";
import { chosenPi } from "../lib/real-pi.ts";
import { startTraceStage } from "../lib/traces/run.ts";
import { type Bill, billOf, type Prices } from "../lib/traces/spending.ts";
import { type TraceName, traceNames } from "../lib/traces/trace.ts";

const parts: Readonly<Record<string, OptimisationOptions>> = {
  cache: { cache: { enabled: true } },
  toolResults: { toolResults: { enabled: true } },
  masking: { masking: { enabled: true } },
  compaction: { compaction: { enabled: true } },
  contextFiles: { contextFiles: { enabled: true, dedupe: true } },
  skills: { skills: { enabled: true } },
  dynamicTools: { dynamicTools: { enabled: true } },
  lean: leanOptimisation,
};

/** A service that charges for cache writes, and one that caches automatically. */
const services: Readonly<Record<string, { readonly provider: ScriptedName; readonly prices: Prices }>> = {
  Anthropic: { provider: "scripted-anthropic", prices: { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75 } },
  OpenAI: { provider: "scripted", prices: { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 0 } },
};

/** Number of parallel sessions; the counts do not depend on it. */
const atOnce = 2;
/** A part whose costs exceed those without it by this factor is reported. */
const costIncreaseFactor = 1.005;

interface Case {
  readonly id: string;
  readonly service: string;
  readonly trace: TraceName;
  readonly part: string;
}

/** The savings of each part of the optimisation on each trace: tokens sent, and their cost. Nothing is timed. */
export const optimisation: Figure = {
  title: "Each part of the optimisation on each trace, off and on: tokens sent, and USD",
  goals: [],
  repetitions: 1,
  deadlineSeconds: 600,
  measure: async (setting, resources) => {
    const cases = allCases();
    const bills = await run(cases, setting, resources);
    const rows: Row[] = [];
    const tables: Table[] = [];
    const notes = [
      `pi ${chosenPi().version}; a mock service with a real prefix cache of 300 s, read at 0.1 and written at 1.25 of the input price`,
      "OpenAI: cache writes are free",
      "lean: cache, toolResults, masking, compaction, contextFiles and skills together",
      "sent: read, written or neither, including summaries; breaks: requests that read at least 1,024 tokens less than were cached",
      "a smaller prompt delays pi's compaction, so the context stays longer: this can increase the cost of dialogue",
      "dynamicTools: each tool costs a request that finds it and one that describes it before its first call",
      "decisions of a model (recalls, requests for details) are not included",
    ];
    for (const service of Object.keys(services)) {
      for (const trace of traceNames) {
        const of = (part: string): Bill | undefined => bills.get(idOf({ service, trace, part }));
        const off = of("off");
        if (off === undefined) continue;
        const on = Object.keys(parts).flatMap((part) => [of(part) ?? []].flat().map((bill) => ({ part, bill })));
        tables.push(tableOf(`${trace}, ${service}`, off, on));
        for (const { part, bill } of on) {
          const name = `${trace}, ${service}, ${part}`;
          if (part === "lean") {
            rows.push({
              name: `${name}: tokens sent, on / off`,
              unit: "x",
              values: [bill.tokensSent / off.tokensSent],
            });
            rows.push({ name: `${name}: USD, on / off`, unit: "x", values: [bill.usd / off.usd] });
          }
          if (bill.usd > off.usd * costIncreaseFactor) {
            notes.unshift(
              `MORE EXPENSIVE: ${name} costs ${(bill.usd / off.usd).toFixed(3)} x as much as without the part`,
            );
          }
        }
      }
    }
    return { rows, tables, notes };
  },
};

function allCases(): readonly Case[] {
  const cases: Case[] = [];
  for (const service of Object.keys(services)) {
    for (const trace of traceNames) {
      // For the second service, only the profile.
      for (const part of ["off", ...(service === "Anthropic" ? Object.keys(parts) : ["lean"])]) {
        cases.push({ id: idOf({ service, trace, part }), service, trace, part });
      }
    }
  }
  return cases;
}

function idOf({ service, trace, part }: Omit<Case, "id">): string {
  return `${service}-${trace}-${part}`;
}

async function run(cases: readonly Case[], setting: Setting, resources: Resources): Promise<ReadonlyMap<string, Bill>> {
  const pricesOf = ({ service }: Case): Prices => services[service]?.prices ?? noPrices;
  const models = new Map(cases.map((one) => [one.id, { cost: pricesOf(one) }]));
  const stage = await startTraceStage(chosenPi(), models, setting, resources);
  const left = [...cases];
  const bills = new Map<string, Bill>();
  const worker = async (): Promise<void> => {
    for (let next = left.shift(); next !== undefined; next = left.shift()) {
      const { id, trace, part, service } = next;
      const provider = services[service]?.provider ?? "scripted";
      const spending = await stage.run({ id, trace, provider, optimisation: parts[part] });
      bills.set(id, billOf(spending, pricesOf(next)));
    }
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
  return bills;
}

const noPrices: Prices = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };

function tableOf(title: string, off: Bill, on: readonly { readonly part: string; readonly bill: Bill }[]): Table {
  const columns = ["part", "requests", "sent off", "sent on", "x", "USD off", "USD on", "x"];
  const more = ["hit rate", "write USD", "breaks", "missed", "summaries"];
  const row = (part: string, bill: Bill): readonly (string | number)[] => [
    ...[part, bill.requests, off.tokensSent, bill.tokensSent, fixed(bill.tokensSent / off.tokensSent, 3)],
    ...[fixed(off.usd, 3), fixed(bill.usd, 3), fixed(bill.usd / off.usd, 3)],
    ...[fixed(bill.hitRate, 3), fixed(bill.writeUsd, 3), bill.breaks, bill.missedTokens, bill.summaries],
  ];
  return {
    title,
    columns: [...columns, ...more],
    rows: [row("off", off), ...on.map(({ part, bill }) => row(part, bill))],
  };
}

/** Rounds a number to its significant digits. */
function fixed(value: number, digits: number): number {
  return Number(value.toFixed(digits));
}
