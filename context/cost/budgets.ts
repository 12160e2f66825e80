import type { BudgetLevel, CostMark, MarkedBudget, OnBudget } from "./marks.ts";
import type { Phase } from "./phase.ts";

/** Configured budgets; the session's own marks override them. */
export interface BudgetRules {
  readonly budgetUsd: number | null;
  readonly onBudget: OnBudget;
  /** Share of a budget that triggers a warning. */
  readonly warnAt: number;
}

/** A budget in effect. */
export interface BudgetState {
  /** Absent: the budget of the session. */
  readonly phase?: Phase;
  readonly usd: number;
  readonly onBudget: OnBudget;
  readonly warnAt: number;
  readonly spentUsd: number;
  readonly level: BudgetLevel | undefined;
  /** The level already reported. */
  readonly told: BudgetLevel | undefined;
}

type BudgetMark = Extract<CostMark, { kind: "budget" | "reached" }>;

interface Told {
  readonly usd: number;
  readonly level: BudgetLevel;
}

/** The budgets of a session, and what was reported about them. */
export class BudgetLedger {
  /** The last mark of the session's budget. `undefined`: none, so the configuration applies. */
  #said: Extract<CostMark, { kind: "budget" }> | undefined;
  #told: Told | undefined;
  readonly #toldOfPhase = new WeakMap<Phase, Told>();

  mark(mark: BudgetMark, open: readonly Phase[]): void {
    if (mark.kind === "budget") {
      this.#said = mark;
      // A budget that is set again is reported again.
      this.#told = undefined;
      return;
    }
    const { label, usd, level } = mark;
    if (label === undefined) {
      this.#told = { usd, level };
      return;
    }
    // Phases with the same label can be nested. The outer one has spent at least as much, and is reported first.
    const phase = open.find(
      (one) => one.label === label && one.budget?.usd === usd && isNews(this.#toldOfPhase.get(one), level),
    );
    if (phase !== undefined) this.#toldOfPhase.set(phase, { usd, level });
  }

  states(rules: BudgetRules, spentUsd: number, open: readonly Phase[]): readonly BudgetState[] {
    const session = this.#session(rules);
    return [
      ...(session === undefined ? [] : [stateOf(session, rules, spentUsd, this.#told)]),
      ...open.flatMap((phase) => {
        const { budget, tally } = phase;
        if (budget === undefined) return [];
        return [{ phase, ...stateOf(budget, rules, tally.total.cost.total, this.#toldOfPhase.get(phase)) }];
      }),
    ];
  }

  #session({ budgetUsd }: BudgetRules): MarkedBudget | undefined {
    const usd = this.#said === undefined ? budgetUsd : this.#said.usd;
    if (usd === null) return undefined;
    return { usd, ...(this.#said?.onBudget === undefined ? {} : { onBudget: this.#said.onBudget }) };
  }
}

function isNews(told: Told | undefined, level: BudgetLevel): boolean {
  return told === undefined || (told.level === "warning" && level === "spent");
}

function stateOf(
  { usd, onBudget }: MarkedBudget,
  rules: BudgetRules,
  spentUsd: number,
  told: Told | undefined,
): Omit<BudgetState, "phase"> {
  const { warnAt } = rules;
  return {
    usd,
    onBudget: onBudget ?? rules.onBudget,
    warnAt,
    spentUsd,
    level: spentUsd >= usd ? "spent" : spentUsd >= usd * warnAt ? "warning" : undefined,
    // A different amount was never reported.
    told: told?.usd === usd ? told.level : undefined,
  };
}
