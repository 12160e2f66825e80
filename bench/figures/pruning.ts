import type { PruningOptions } from "../../protocol/pruning/options.ts";
import type { ScriptedName } from "../../provider/agent-dir.ts";
import { loadVocabulary } from "../../provider/cache/vocabulary.ts";
import type { LogEntry } from "../../provider/log.ts";
import type { Figure, Resources, Row, Setting, Table } from "../lib/figure.ts";
import type { CompressPolicy } from "../lib/pruning/compressor.ts";
import { chosenPi } from "../lib/real-pi.ts";
import { startTraceStage } from "../lib/traces/run.ts";
import { type Spending, summaryLength } from "../lib/traces/script.ts";
import { type Bill, billOf, type Prices } from "../lib/traces/spending.ts";
import { type TraceName, traceNames } from "../lib/traces/trace.ts";

/** A window in which nothing is ever compacted, in tokens. */
const endless = 10_000_000;
/**
 * Windows in which pi compacts each trace. The declarations of a hundred tools still leave room for a conversation.
 */
const windows: Readonly<Record<TraceName, number>> = {
  short: 64_000,
  autonomous: 64_000,
  dialogue: 64_000,
  tools: 112_000,
};

interface Mode {
  /** Whether the window is unlimited. */
  readonly isEndless?: boolean;
  readonly pruning?: PruningOptions;
  readonly compresses?: CompressPolicy;
}

const compresses = (everyTokens: number): CompressPolicy => ({ everyTokens, spare: 6, summaryLength, blocks: 6 });

const modes = {
  off: { isEndless: true },
  "pi's compaction": {},
  "strategies alone": { pruning: { enabled: true } },
  "compress, each 8k": { pruning: { enabled: true }, compresses: compresses(8_000) },
  "compress, each 20k": { pruning: { enabled: true }, compresses: compresses(20_000) },
} as const satisfies Readonly<Record<string, Mode>>;
type ModeName = keyof typeof modes;
const modeNames = Object.keys(modes) as ModeName[];
const judged: ModeName = "compress, each 20k";

const services: Readonly<Record<string, { readonly provider: ScriptedName; readonly prices: Prices }>> = {
  Anthropic: { provider: "scripted-anthropic", prices: { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75 } },
  OpenAI: { provider: "scripted", prices: { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 0 } },
};

/** Number of parallel sessions; the counts do not depend on it. */
const atOnce = 2;

interface Case {
  readonly id: string;
  readonly service: string;
  readonly trace: TraceName;
  readonly mode: ModeName;
}

interface Outcome {
  readonly bill: Bill;
  readonly spending: Spending;
}

/**
 * The savings of compress calls on each trace, compared with pi's own compaction and with no compaction. Nothing is
 * timed.
 */
export const pruning: Figure = {
  title: "Traces with scripted compress calls, with pi's own compaction, and unchanged: tokens sent, and USD",
  goals: [],
  repetitions: 1,
  deadlineSeconds: 600,
  measure: async (setting, resources) => {
    const outcomes = await run(setting, resources);
    const of = (service: string, trace: TraceName, mode: ModeName): Outcome => {
      const found = outcomes.get(idOf({ service, trace, mode }));
      if (found === undefined) throw new Error(`No outcome of ${service}, ${trace}, ${mode}.`);
      return found;
    };
    const rows: Row[] = await standing(of("Anthropic", "short", judged), of("Anthropic", "short", "pi's compaction"));
    const tables: Table[] = [];
    for (const service of Object.keys(services)) {
      for (const trace of traceNames) {
        const all = modeNames.map((mode) => ({ mode, ...of(service, trace, mode) }));
        tables.push(tableOf(`${trace}, ${service}`, all));
        const [native, own] = [of(service, trace, "pi's compaction"), of(service, trace, judged)];
        const name = `${trace}, ${service}, ${judged} / pi's compaction`;
        rows.push({ name: `${name}: tokens sent`, unit: "x", values: [own.bill.tokensSent / native.bill.tokensSent] });
        rows.push({ name: `${name}: USD`, unit: "x", values: [own.bill.usd / native.bill.usd] });
      }
    }
    rows.push(prefixRow([...outcomes].filter(([id]) => id.includes("compress")).map(([, { spending }]) => spending)));
    const notes = [
      `pi ${chosenPi().version}; a mock service with a real prefix cache of 300 s, read at 0.1 and written at 1.25 of the input price`,
      `windows of ${windows.short} tokens, tools: ${windows.tools}; off: of ${endless}, in which nothing is compacted`,
      "OpenAI: cache writes are free",
      "compress, each N: the model creates a block whenever closed work reaches N tokens; it only sees the request",
      `a summary has ${summaryLength} characters, both pi's and a block's; effects of its quality are not included`,
      "sent: read, written or neither, including summaries; breaks: requests that read at least 1,024 tokens less than were cached",
      "same prefix: requests that begin with the complete previous request, of those that follow no compress call and no summary",
    ];
    return { rows, tables, notes };
  },
};

function allCases(): readonly Case[] {
  return Object.keys(services).flatMap((service) =>
    traceNames.flatMap((trace) =>
      modeNames.map((mode) => ({ id: idOf({ service, trace, mode }), service, trace, mode })),
    ),
  );
}

function idOf({ service, trace, mode }: Omit<Case, "id">): string {
  return `${service}-${trace}-${mode}`.replaceAll(/[^\w-]+/g, "-");
}

async function run(setting: Setting, resources: Resources): Promise<ReadonlyMap<string, Outcome>> {
  const cases = allCases();
  const pricesOf = ({ service }: Case): Prices => services[service]?.prices ?? noPrices;
  const models = new Map(cases.map((one) => [one.id, { cost: pricesOf(one), contextWindow: windowOf(one) }]));
  const stage = await startTraceStage(chosenPi(), models, setting, resources);
  const left = [...cases];
  const outcomes = new Map<string, Outcome>();
  const worker = async (): Promise<void> => {
    for (let next = left.shift(); next !== undefined; next = left.shift()) {
      const { id, trace, mode, service } = next;
      const { pruning: options, compresses: policy }: Mode = modes[mode];
      const provider = services[service]?.provider ?? "scripted";
      const spending = await stage.run({ id, trace, provider, pruning: options, compresses: policy });
      outcomes.set(id, { spending, bill: billOf(spending, pricesOf(next)) });
    }
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
  return outcomes;
}

function windowOf({ mode, trace }: Case): number {
  const { isEndless = false }: Mode = modes[mode];
  return isEndless ? endless : windows[trace];
}

const noPrices: Prices = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };

function tableOf(title: string, all: readonly (Outcome & { readonly mode: ModeName })[]): Table {
  const native = all.find(({ mode }) => mode === "pi's compaction");
  const base = native?.bill ?? all[0]?.bill;
  const columns = ["", "requests", "sent", "x native", "USD", "x native", "hit rate", "write USD", "breaks", "missed"];
  return {
    title,
    columns: [...columns, "summaries", "compressed", "same prefix"],
    rows: all.map(({ mode, bill, spending: { compressions, prefix } }) => [
      ...[mode, bill.requests, bill.tokensSent, fixed(bill.tokensSent / (base?.tokensSent ?? 1))],
      ...[fixed(bill.usd), fixed(bill.usd / (base?.usd ?? 1)), fixed(bill.hitRate), fixed(bill.writeUsd)],
      ...[bill.breaks, bill.missedTokens, bill.summaries, compressions, fixed(prefix.same / prefix.requests)],
    ]),
  };
}

function prefixRow(spendings: readonly Spending[]): Row {
  const sum = (of: (spending: Spending) => number): number => spendings.reduce((total, one) => total + of(one), 0);
  const share = sum(({ prefix }) => prefix.same) / sum(({ prefix }) => prefix.requests);
  return {
    name: "same prefix, of requests that follow no compress call and no summary",
    unit: "%",
    values: [100 * share],
  };
}

/** Instructions for compressing that each request contains. */
async function standing(on: Outcome, off: Outcome): Promise<Row[]> {
  const { encode } = await loadVocabulary("cl100k_base");
  const count = (text: string): number => encode(text).length;
  const [told, bare] = [on, off].map(({ spending }) => tellings(spending.first));
  if (told === undefined || bare === undefined) throw new Error("No request has instructions.");
  const system = count(told.system) - count(bare.system);
  const toolOf = (name: string): number => count(told.tools.get(name) ?? "");
  return [
    { name: "standing cost: system text", unit: "tokens", values: [system] },
    { name: "standing cost: the tool compress", unit: "tokens", values: [toolOf("compress")] },
    {
      name: "standing cost: system text and the tool compress (at most 1,000)",
      unit: "tokens",
      values: [system + toolOf("compress")],
    },
    { name: "in addition: the tool recall", unit: "tokens", values: [toolOf("recall")] },
  ];
}

function tellings(request: LogEntry | undefined): { readonly system: string; readonly tools: Map<string, string> } {
  const tools = (request?.body["tools"] ?? []) as readonly { readonly name: string }[];
  const system = request?.messages.flatMap(({ role, texts }) => (role === "system" ? texts : [])) ?? [];
  return { system: system.join("\n"), tools: new Map(tools.map((tool) => [tool.name, JSON.stringify(tool)])) };
}

/** Rounds a number to its significant digits. */
function fixed(value: number): number {
  return Number(value.toFixed(3));
}
