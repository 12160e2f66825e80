import type { PruningOptions } from "../../protocol/pruning/options.ts";
import type { Figure, Row, Table } from "../lib/figure.ts";
import type { CompressPolicy } from "../lib/pruning/compressor.ts";
import { chosenPi } from "../lib/real-pi.ts";
import { type Spending, summaryLength } from "../lib/traces/script.ts";
import {
  caseId,
  fixed,
  runCases,
  type ServiceName,
  serviceNames,
  type TraceCase,
  type TraceOutcome,
} from "../lib/traces/services.ts";
import { standingOf } from "../lib/traces/standing.ts";
import { type TraceName, traceNames } from "../lib/traces/trace.ts";

/** A window in which nothing is ever compacted, in tokens. */
const endless = 10_000_000;
/**
 * Windows in which pi compacts each trace. The declarations of a hundred tools still leave room for a conversation.
 */
const windows: Readonly<Record<(typeof traceNames)[number], number>> = {
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

/**
 * The savings of compress calls on each trace, compared with pi's own compaction and with no compaction. Nothing is
 * timed.
 */
export const pruning: Figure = {
  title: "Traces with scripted compress calls, with pi's own compaction, and unchanged: tokens sent, and USD",
  goals: [],
  repetitions: 1,
  isCounted: true,
  deadlineSeconds: 600,
  measure: async (setting, resources) => {
    const cases = allCases();
    const outcomeOf = await runCases(cases, setting, resources);
    const of = (service: ServiceName, trace: TraceName, mode: ModeName): TraceOutcome =>
      outcomeOf(caseId(service, trace, mode));
    const rows: Row[] = await standing(of("Anthropic", "short", judged), of("Anthropic", "short", "pi's compaction"));
    const tables: Table[] = [];
    for (const service of serviceNames) {
      for (const trace of traceNames) {
        const all = modeNames.map((mode) => ({ mode, ...of(service, trace, mode) }));
        tables.push(tableOf(`${trace}, ${service}`, all));
        const [native, own] = [of(service, trace, "pi's compaction"), of(service, trace, judged)];
        const name = `${trace}, ${service}, ${judged} / pi's compaction`;
        rows.push({ name: `${name}: tokens sent`, unit: "x", values: [own.bill.tokensSent / native.bill.tokensSent] });
        rows.push({ name: `${name}: USD`, unit: "x", values: [own.bill.usd / native.bill.usd] });
      }
    }
    rows.push(prefixRow(cases.filter(({ compresses }) => compresses).map(({ id }) => outcomeOf(id).spending)));
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

function allCases(): readonly TraceCase[] {
  return serviceNames.flatMap((service) =>
    traceNames.flatMap((trace) =>
      modeNames.map((mode) => {
        const { isEndless = false, pruning: options, compresses: policy }: Mode = modes[mode];
        return {
          ...{ id: caseId(service, trace, mode), service, trace, pruning: options, compresses: policy },
          contextWindow: isEndless ? endless : windows[trace],
        };
      }),
    ),
  );
}

function tableOf(title: string, all: readonly (TraceOutcome & { readonly mode: ModeName })[]): Table {
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
async function standing(on: TraceOutcome, off: TraceOutcome): Promise<Row[]> {
  const [told, bare] = [await standingOf(on.spending.first), await standingOf(off.spending.first)];
  const system = told.system - bare.system;
  const compress = told.tools.get("compress") ?? 0;
  return [
    { name: "standing cost: system text", unit: "tokens", values: [system] },
    { name: "standing cost: the tool compress", unit: "tokens", values: [compress] },
    {
      name: "standing cost: system text and the tool compress (at most 1,000)",
      unit: "tokens",
      values: [system + compress],
    },
    { name: "in addition: the tool recall", unit: "tokens", values: [told.tools.get("recall") ?? 0] },
  ];
}
