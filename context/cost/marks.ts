import { isRecord } from "../../protocol/objects.ts";
import { readUsage, type Usage } from "./usage.ts";

/** `customType` of the entries that record phases, checkpoints and budgets in a session's file. */
export const COST_MARK_TYPE = "pi-rpcd.cost";

/** Maximum length of a label in code points. */
export const MAX_LABEL_CHARS = 120;
/** Maximum nesting of phases. */
export const MAX_OPEN_PHASES = 32;

export type OnBudget = "warn" | "stop";
export type BudgetLevel = "warning" | "spent";

/** Content of one of our entries. The cost up to it follows from its position, so it cannot be wrong. */
export type CostMark =
  | { readonly kind: "checkpoint"; readonly label: string }
  | { readonly kind: "phaseStart"; readonly label: string; readonly budget?: MarkedBudget }
  /** Ends the innermost open phase with this label, and all phases inside it. */
  | { readonly kind: "phaseEnd"; readonly label: string }
  /** New budget of the session; `usd: null`: unlimited. `onBudget` absent: as configured. */
  | { readonly kind: "budget"; readonly usd: number | null; readonly onBudget?: OnBudget }
  /** Records a reported budget level. `label`: the phase of the budget; absent: the session's. */
  | { readonly kind: "reached"; readonly label?: string; readonly usd: number; readonly level: BudgetLevel }
  /** A summary that was paid for and not used; pi's sums do not include it. */
  | { readonly kind: "failedSummary"; readonly usage: Usage; readonly model?: string };

export interface MarkedBudget {
  readonly usd: number;
  /** Absent: as configured. */
  readonly onBudget?: OnBudget;
}

/** Returns the `data` of an entry. */
export function markData(mark: CostMark): Readonly<Record<string, unknown>> {
  return { v: 1, ...mark };
}

type Fields = Readonly<Record<string, unknown>>;

/**
 * Reads the `data` of an entry. `undefined` if it is invalid, because other extensions and people can write such
 * entries.
 */
export function readMark(data: unknown): CostMark | undefined {
  if (!isRecord(data) || data["v"] !== 1) return undefined;
  const kind = data["kind"] as CostMark["kind"];
  return Object.hasOwn(readers, kind) ? readers[kind](data) : undefined;
}

const readers: Readonly<Record<CostMark["kind"], (data: Fields) => CostMark | undefined>> = {
  checkpoint: ({ label }) => (isLabel(label) ? { kind: "checkpoint", label } : undefined),
  phaseEnd: ({ label }) => (isLabel(label) ? { kind: "phaseEnd", label } : undefined),
  phaseStart: ({ label, budget }) => {
    if (!isLabel(label)) return undefined;
    const kind = "phaseStart";
    if (!isRecord(budget) || !isUsd(budget["usd"])) return { kind, label };
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

/** Whether a value is a valid label of a phase or checkpoint. */
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
