import type { GoalId } from "../goals.ts";
import type { Figure, Measured, Resources, Row, Setting, Table } from "../lib/figure.ts";
import { chosenPi } from "../lib/real-pi.ts";
import { median } from "../lib/statistics.ts";
import { leanParts, lean as leanProfile, type SessionSettings } from "../lib/traces/parts.ts";
import type { PricedEdit } from "../lib/traces/run.ts";
import {
  caseId,
  fixed,
  runCases,
  type ServiceName,
  serviceNames,
  type TraceCase,
  type TraceOutcome,
} from "../lib/traces/services.ts";
import { type Standing, standingOf } from "../lib/traces/standing.ts";
import { longTraceNames, type TraceName } from "../lib/traces/trace.ts";

/** Tokens, with the goal of the profile's costs. */
const windows = {
  "32k": { tokens: 32_000, goal: "L 32k" },
  "64k": { tokens: 64_000, goal: "L 64k" },
  "200k": { tokens: 200_000, goal: "L 200k" },
  "1M": { tokens: 1_000_000, goal: "L 1M" },
} as const satisfies Readonly<Record<string, { readonly tokens: number; readonly goal: GoalId }>>;
type Window = keyof typeof windows;
const windowNames = Object.keys(windows) as Window[];

/** A session in several configurations, which are compared with bare pi. */
interface Cell {
  readonly window: Window;
  readonly service: ServiceName;
  readonly trace: TraceName;
  /** Whether the model gets back a fifth of what it has lost. */
  readonly readsAgain?: boolean;
  readonly hasThreads?: boolean;
}

interface Comparison {
  readonly cells: readonly Cell[];
  /** By name, compared with bare pi. */
  readonly configurations: Readonly<Record<string, SessionSettings>>;
  readonly goalsOf: (cell: Cell, name: string) => readonly GoalId[];
}

const bare = "bare pi";
const notes = [
  "a mock service with a real prefix cache of 300 s, read at 0.1 and written at 1.25 of the input price; OpenAI: cache writes are free",
  "before it edits a file, the model gets the file's last read back if its request does not have all of it",
  "a fifth again: it also gets back a fifth of the results that were cut, of those masked or pruned, and of those compacted",
  "recalls: by the tool recall; repeats: by the same call again; unlike: recalls that did not return the original",
  "USD again: requests whose answer is such a call; it includes what they missed of the cache",
  "continued: requests that sent only what is new since the last answer (Anthropic's message threads, pi 1.5.1 and later)",
  "breaks: requests that read at least 1,024 tokens less than were cached, also after a compaction or a pause",
  "the quality of answers is not measured: the model continues its trace whatever its request has lost",
];

/** The cost of long sessions with the profile `lean`, compared with bare pi in the same run. Nothing is timed. */
export const lean: Figure = {
  title: "Sessions of 300 calls with bare pi and with the profile lean, for several windows: tokens sent, and USD",
  goals: ["L", "L price", ...windowNames.map((window) => windows[window].goal)],
  repetitions: 1,
  isCounted: true,
  deadlineSeconds: 7_200,
  measure: (setting, resources) =>
    compare(setting, resources, {
      cells: leanCells(),
      configurations: { lean: leanProfile },
      goalsOf: ({ window, readsAgain }) => ["L", ...(readsAgain === true ? [] : [windows[window].goal])],
    }),
};

/** The cost of each part of `lean` alone. */
export const leanPart: Figure = {
  title: "Sessions of 300 calls with bare pi and with each part of the profile lean alone: tokens sent, and USD",
  goals: ["L part"],
  repetitions: 1,
  isCounted: true,
  deadlineSeconds: 7_200,
  measure: (setting, resources) =>
    compare(setting, resources, {
      cells: (["64k", "200k"] as const).flatMap((window) =>
        longTraceNames.map((trace) => ({ window, service: "Anthropic" as const, trace })),
      ),
      configurations: { ...leanParts, pruning: { pruning: { enabled: true } } },
      // The profile does not use pruning, so its price has no goal.
      goalsOf: (_cell, name) => (name === "pruning" ? [] : ["L part"]),
    }),
};

function leanCells(): readonly Cell[] {
  const threads = chosenPi().version === "0.87.1" ? [] : [{ service: "Anthropic", hasThreads: true } as const];
  return windowNames.flatMap((window) =>
    longTraceNames.flatMap((trace) => [
      ...serviceNames.flatMap((service) => [
        { window, service, trace },
        { window, service, trace, readsAgain: true },
      ]),
      ...threads.map((more) => ({ window, trace, ...more })),
    ]),
  );
}

async function compare(
  setting: Setting,
  resources: Resources,
  { cells: all, configurations, goalsOf }: Comparison,
): Promise<Measured> {
  const cells = all.filter((cell) => new RegExp(setting.only ?? "").test(nameOf(cell)));
  const names = Object.keys(configurations);
  const variants = Array.from({ length: setting.repetitions }, (_, variant) => variant);
  const caseOf = (cell: Cell, name: string, variant: number): TraceCase => {
    const { window, service, trace, readsAgain, hasThreads } = cell;
    return {
      ...{ id: caseId(nameOf(cell), name, variant), service, trace, variant, hasThreads, ...configurations[name] },
      contextWindow: windows[window].tokens,
      readsAgain: readsAgain === true ? 5 : "edits",
    };
  };
  const cases = cells.flatMap((cell) =>
    variants.flatMap((variant) => [bare, ...names].map((name) => caseOf(cell, name, variant))),
  );
  const outcomeOf = await runCases(cases, setting, resources);
  const of = (cell: Cell, name: string, variant = 0): TraceOutcome => outcomeOf(caseOf(cell, name, variant).id);
  const rows = cells.flatMap((cell) =>
    names.map(
      (name): Row => ({
        name: `${nameOf(cell)}: USD, ${name} / ${bare}`,
        unit: "x",
        values: variants.map((variant) => of(cell, name, variant).bill.usd / of(cell, bare, variant).bill.usd),
        goals: goalsOf(cell, name),
      }),
    ),
  );
  const tables = windowNames.flatMap((window): Table[] => {
    const own = cells.filter((cell) => cell.window === window);
    const lines = own.flatMap((cell) =>
      [bare, ...names].map((name) => [nameOf(cell), name, ...line(of(cell, name), of(cell, bare))]),
    );
    return lines.length === 0 ? [] : [{ title: `a window of ${window}`, columns: ["", "", ...columns], rows: lines }];
  });
  const measured = cells.find(({ service }) => service === "Anthropic");
  if (measured !== undefined) {
    const native = await standingOf(of(measured, bare).spending.first);
    for (const name of names) rows.push(standingRow(name, await standingOf(of(measured, name).spending.first), native));
  }
  const edits = cells.flatMap((cell) =>
    names.flatMap((name) =>
      variants.flatMap((variant) =>
        of(cell, name, variant).edits.map((edit) => ({ ...edit, of: `${nameOf(cell)}, ${name}` })),
      ),
    ),
  );
  const errors = edits.filter(({ isOver }) => isOver).map(errorOf);
  if (errors.length > 0) {
    const name = `${errors.length} edits of earlier context: predicted and actual price, median error`;
    rows.push({ name, unit: "%", values: [median(errors)], goals: names.includes("lean") ? ["L price"] : [] });
  }
  const losing = edits.filter((edit) => netOf(edit.actual) < -noticedUsd);
  const losses = losing.map((edit) => `LOST ${usd(-netOf(edit.actual))}: ${edit.part}, ${edit.of}; ${forecast(edit)}`);
  return { rows, tables, notes: [...losses, `pi ${chosenPi().version}`, ...notes] };
}

/** Larger losses by an edit are reported. */
const noticedUsd = 0.02;

/** Percent of all that the edit has cost and saved. */
function errorOf({ predicted, actual }: PricedEdit): number {
  const whole = actual.missedUsd + actual.savedUsd;
  return whole === 0 ? 0 : (100 * Math.abs(netOf(predicted) - netOf(actual))) / whole;
}

function netOf({ missedUsd, savedUsd }: PricedEdit["actual"]): number {
  return savedUsd - missedUsd;
}

function forecast({ predicted, actual, isOver }: PricedEdit): string {
  const text = ({ missedUsd, savedUsd }: PricedEdit["actual"]): string =>
    `missed ${usd(missedUsd)}, saved ${usd(savedUsd)}`;
  return `predicted: ${text(predicted)}; actual: ${text(actual)}${isOver ? "" : " at the session's end"}`;
}

function usd(amount: number): string {
  return `${amount.toFixed(3)} USD`;
}

function nameOf({ window, service, trace, readsAgain, hasThreads }: Cell): string {
  const more = [...(readsAgain === true ? ["a fifth again"] : []), ...(hasThreads === true ? ["threads"] : [])];
  return [window, service, trace, ...more].join(", ");
}

const columns = [
  ...["requests", "summaries", "sent", "USD", "change %", "hit rate", "breaks", "missed", "continued"],
  ...["recalls", "repeats", "unlike", "USD again", "edits"],
];

function line({ bill, spending, edits }: TraceOutcome, { bill: native }: TraceOutcome): readonly number[] {
  const { continued, gotBack } = spending;
  return [
    ...[bill.requests, bill.summaries, bill.tokensSent, fixed(bill.usd)],
    ...[fixed(100 * (bill.usd / native.usd - 1), 1), fixed(bill.hitRate), bill.breaks, bill.missedTokens, continued],
    ...[gotBack.recalls, gotBack.repeats, gotBack.unlike, fixed(bill.againUsd), edits.length],
  ];
}

/** What each request contains in addition, before its conversation. */
function standingRow(name: string, own: Standing, native: Standing): Row {
  const system = own.system - native.system;
  const tools = [...own.tools].filter(([tool]) => !native.tools.has(tool));
  const parts = [`system prompt ${system}`, ...tools.map(([tool, tokens]) => `${tool} ${tokens}`)];
  return {
    name: `standing texts of ${name}: ${parts.join(", ")}`,
    unit: "tokens",
    values: [tools.reduce((sum, [, tokens]) => sum + tokens, system)],
  };
}
