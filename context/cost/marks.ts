import { isFields, readUsage, type Usage } from "./usage.ts";

/** `customType` of the entries by which a session's file knows its phases, checkpoints and budgets. */
export const COST_MARK_TYPE = "pi-rpcd.cost";

/** Characters of a label, each of one code point. */
export const MAX_LABEL_CHARS = 120;
/** Phases inside one another. */
export const MAX_OPEN_PHASES = 32;

export type OnBudget = "warn" | "stop";
export type BudgetLevel = "warning" | "spent";

/** What one of our entries says. What was spent up to it follows from where it stands, so that it cannot be wrong. */
export type CostMark =
  | { readonly kind: "checkpoint"; readonly label: string }
  | { readonly kind: "phaseStart"; readonly label: string; readonly budget?: MarkedBudget }
  /** Ends the innermost open phase of this label, with all inside it. */
  | { readonly kind: "phaseEnd"; readonly label: string }
  /** What the session may cost from now on; `usd: null`: as much as it wants. `onBudget` absent: as configured. */
  | { readonly kind: "budget"; readonly usd: number | null; readonly onBudget?: OnBudget }
  /** It was told that so much of a budget is spent. `label`: of the phase whose budget it is; absent: the session's. */
  | { readonly kind: "reached"; readonly label?: string; readonly usd: number; readonly level: BudgetLevel }
  /** A summary that was paid for and not used: it is in no sum of pi's. */
  | { readonly kind: "failedSummary"; readonly usage: Usage; readonly model?: string };

export interface MarkedBudget {
  readonly usd: number;
  /** Absent: as configured. */
  readonly onBudget?: OnBudget;
}

/** The `data` of an entry of ours. */
export function markData(mark: CostMark): Readonly<Record<string, unknown>> {
  return { v: 1, ...mark };
}

type Fields = Readonly<Record<string, unknown>>;

/** What an entry's data says. `undefined`: nothing that we would have written; other extensions and people can write anything. */
export function readMark(data: unknown): CostMark | undefined {
  if (!isFields(data) || data["v"] !== 1) return undefined;
  const kind = data["kind"] as CostMark["kind"];
  return Object.hasOwn(readers, kind) ? readers[kind](data) : undefined;
}

const readers: Readonly<Record<CostMark["kind"], (data: Fields) => CostMark | undefined>> = {
  checkpoint: ({ label }) => (isLabel(label) ? { kind: "checkpoint", label } : undefined),
  phaseEnd: ({ label }) => (isLabel(label) ? { kind: "phaseEnd", label } : undefined),
  phaseStart: ({ label, budget }) => {
    if (!isLabel(label)) return undefined;
    const kind = "phaseStart";
    if (!isFields(budget) || !isUsd(budget["usd"])) return { kind, label };
    return { kind, label, budget: { usd: budget["usd"], ...onBudgetOf(budget) } };
  },
  budget: (data) => {
    const { usd } = data;
    return usd === null || isUsd(usd) ? { kind: "budget", usd, ...onBudgetOf(data) } : undefined;
  },
  reached: ({ label, usd, level }) => {
    if (!isUsd(usd) || (level !== "warning" && level !== "spent")) return undefined;
    if (label === undefined) return { kind: "reached", usd, level };
    return isLabel(label) ? { kind: "reached", label, usd, level } : undefined;
  },
  failedSummary: ({ usage: given, model }) => {
    const usage = readUsage(given);
    if (usage === undefined) return undefined;
    return { kind: "failedSummary", usage, ...(typeof model === "string" ? { model } : {}) };
  },
};

/** Whether something can be the label of a phase or checkpoint. */
export function isLabel(value: unknown): value is string {
  if (typeof value !== "string" || value.length > 2 * MAX_LABEL_CHARS || value.trim() === "") return false;
  return value.length <= MAX_LABEL_CHARS || [...value].length <= MAX_LABEL_CHARS;
}

function isUsd(value: unknown): value is number {
  return typeof value === "number" && value > 0 && value <= 1_000_000;
}

function onBudgetOf(fields: Fields): { readonly onBudget?: OnBudget } {
  const { onBudget } = fields;
  return onBudget === "warn" || onBudget === "stop" ? { onBudget } : {};
}
