import type { GoalId } from "../goals.ts";
import type { Figure, Row, Table } from "../lib/figure.ts";
import { chosenPi } from "../lib/real-pi.ts";
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
import { longTraceNames, type TraceName } from "../lib/traces/trace.ts";

/** Tokens, with the goal of the profile's costs. */
const windows: Readonly<Record<string, { readonly tokens: number; readonly goal: GoalId }>> = {
  "32k": { tokens: 32_000, goal: "L 32k" },
  "64k": { tokens: 64_000, goal: "L 64k" },
  "200k": { tokens: 200_000, goal: "L 200k" },
  "1M": { tokens: 1_000_000, goal: "L 1M" },
};

/** One session with bare pi and one with the profile, which are compared. */
interface Cell {
  readonly window: string;
  readonly service: ServiceName;
  readonly trace: TraceName;
  /** Each so manieth of the lost results is read again. */
  readonly every?: number;
}

export const lean: Figure = {
  title: "Sessions of 300 calls with bare pi and with the profile lean, for several windows: tokens sent, and USD",
  goals: ["L", "L 32k", "L 64k", "L 200k", "L 1M"],
  repetitions: 1,
  deadlineSeconds: 3_600,
  measure: async (setting, resources) => {
    const cells = allCells().filter((cell) => `${cell.window}, ${nameOf(cell)}`.includes(setting.only ?? ""));
    const variants = Array.from({ length: setting.repetitions }, (_, variant) => variant);
    const cases = cells.flatMap((cell) =>
      variants.flatMap((variant) => sides.map((side) => caseOf(cell, side, variant))),
    );
    const outcomeOf = await runCases(cases, setting, resources);
    const of = (cell: Cell, side: Side): readonly TraceOutcome[] =>
      variants.map((variant) => outcomeOf(caseOf(cell, side, variant).id));
    const rows = cells.map((cell): Row => {
      const [bare, own] = [of(cell, "bare"), of(cell, "lean")];
      const goal = windows[cell.window]?.goal;
      return {
        name: `${cell.window}, ${nameOf(cell)}: USD, lean / bare pi`,
        unit: "x",
        values: own.map(({ bill }, at) => bill.usd / (bare[at]?.bill.usd ?? Number.NaN)),
        goals: ["L", ...(goal === undefined || cell.every !== undefined ? [] : [goal])],
      };
    });
    const tables = Object.keys(windows).flatMap((window): Table[] => {
      const own = cells.filter((cell) => cell.window === window);
      if (own.length === 0) return [];
      return [
        {
          title: `a window of ${window}, the first variant`,
          columns: ["", "", ...columns],
          rows: own.flatMap((cell) =>
            sides.flatMap((side) => {
              const [outcome] = of(cell, side);
              const [bare] = of(cell, "bare");
              return outcome && bare ? [[nameOf(cell), side, ...line(outcome, bare)]] : [];
            }),
          ),
        },
      ];
    });
    const notes = [`pi ${chosenPi().version}`];
    const first = cells.find(({ service }) => service === "Anthropic");
    if (first !== undefined) {
      const [told, bare] = await Promise.all(
        (["lean", "bare"] as const).map((side) => standingOf(of(first, side)[0]?.spending.first)),
      );
      if (told === undefined || bare === undefined) throw new Error("No request has instructions.");
      const tools = [...told.tools].filter(([name]) => !bare.tools.has(name));
      const all = tools.reduce((sum, [, tokens]) => sum + tokens, told.system - bare.system);
      rows.push({ name: "standing texts of lean / of bare pi, in each request", unit: "tokens", values: [all] });
      notes.push(
        `standing texts: system prompt ${bare.system} → ${told.system}, ${tools.map(([name, tokens]) => `${name} ${tokens}`).join(", ")}`,
      );
    }
    return { rows, tables, notes };
  },
};

const sides = ["bare", "lean"] as const;
type Side = (typeof sides)[number];

function allCells(): readonly Cell[] {
  return Object.keys(windows).flatMap((window) =>
    serviceNames.flatMap((service) =>
      longTraceNames.flatMap((trace) => [
        { window, service, trace },
        { window, service, trace, every: 5 },
      ]),
    ),
  );
}

function nameOf({ service, trace, every }: Cell): string {
  return `${service}, ${trace}${every === undefined ? "" : ", a fifth again"}`;
}

function caseOf(cell: Cell, side: Side, variant: number): TraceCase {
  const { window, service, trace, every } = cell;
  return {
    ...{ id: caseId(window, nameOf(cell), side, variant), service, trace, variant },
    contextWindow: windows[window]?.tokens,
    readsAgain: every ?? "edits",
    profile: side === "lean" ? "lean" : undefined,
  };
}

const columns = [
  "requests",
  "sent",
  "USD",
  "change %",
  "hit rate",
  "breaks",
  "missed",
  "summaries",
  "recalls",
  "repeats",
  "unlike",
  "USD again",
];

function line({ bill, spending: { gotBack } }: TraceOutcome, bare: TraceOutcome): readonly number[] {
  return [
    ...[bill.requests, bill.tokensSent, fixed(bill.usd, 2), fixed(100 * (bill.usd / bare.bill.usd - 1), 1)],
    ...[fixed(bill.hitRate), bill.breaks, bill.missedTokens, bill.summaries],
    ...[gotBack.recalls, gotBack.repeats, gotBack.unlike, fixed(bill.againUsd)],
  ];
}
