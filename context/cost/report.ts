import type { BudgetRules, BudgetState } from "./budgets.ts";
import type { Checkpoint, CostFold } from "./fold.ts";
import type { Phase } from "./phase.ts";
import type { Usage } from "./usage.ts";

export interface BudgetFacts {
  readonly usd: number;
  readonly onBudget: "warn" | "stop";
  readonly spentUsd: number;
  readonly warnAt: number;
}

export interface PhaseFacts {
  readonly label: string;
  readonly path: string[];
  readonly isOpen: boolean;
  readonly usage: Usage;
  readonly requests: number;
  readonly wallMs: number;
  readonly budget?: BudgetFacts;
}

export interface CostReport {
  readonly total: Usage;
  readonly byModel: Record<string, Usage>;
  readonly bySource: Record<string, Usage>;
  readonly phases: PhaseFacts[];
  readonly requests: number;
  readonly estimated: boolean;
  readonly budget?: BudgetFacts;
  readonly checkpoints: Checkpoint[];
}

/** Builds the result of `cost/report`. `now`: Unix milliseconds, for open phases. */
export function reportOf(fold: CostFold, rules: BudgetRules, now: number): CostReport {
  const { whole } = fold;
  const budget = fold.budgets(rules).find(({ phase }) => phase === undefined);
  return {
    total: whole.total,
    byModel: whole.byModel(),
    bySource: whole.bySource(),
    phases: fold.phases.map((phase) => phaseFacts(phase, rules, now)),
    requests: whole.requests,
    estimated: whole.isEstimated,
    ...(budget === undefined ? {} : { budget: budgetFacts(budget) }),
    checkpoints: [...fold.checkpoints],
  };
}

export function phaseFacts(phase: Phase, rules: BudgetRules, now: number): PhaseFacts {
  const { label, path, isOpen, tally, budget } = phase;
  return {
    label,
    path: [...path],
    isOpen,
    usage: tally.total,
    requests: tally.requests,
    wallMs: Math.round(phase.wallMs(now)),
    ...(budget === undefined
      ? {}
      : {
          budget: {
            usd: budget.usd,
            onBudget: budget.onBudget ?? rules.onBudget,
            spentUsd: tally.total.cost.total,
            warnAt: rules.warnAt,
          },
        }),
  };
}

export function budgetFacts({ usd, onBudget, spentUsd, warnAt }: BudgetState): BudgetFacts {
  return { usd, onBudget, spentUsd, warnAt };
}
