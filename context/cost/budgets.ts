import type { BudgetLevel, CostMark, MarkedBudget, OnBudget } from "./marks.ts";
import type { Phase } from "./phase.ts";

/** What is configured of budgets; what the session's own marks say goes before it. */
export interface BudgetRules {
  readonly budgetUsd: number | null;
  readonly onBudget: OnBudget;
  /** The share of a budget at which it is told of. */
  readonly warnAt: number;
}

/** One budget that holds now. */
export interface BudgetState {
  /** Absent: the session's. */
  readonly phase?: Phase;
  readonly usd: number;
  readonly onBudget: OnBudget;
  readonly warnAt: number;
  readonly spentUsd: number;
  readonly level: BudgetLevel | undefined;
  /** What was told of it already. */
  readonly told: BudgetLevel | undefined;
}

type BudgetMark = Extract<CostMark, { kind: "budget" | "reached" }>;

interface Told {
  readonly usd: number;
  readonly level: BudgetLevel;
}

/** Which budgets a session has, and what was told of them. */
export class BudgetBook {
  /** What was said last of the session's budget. `undefined`: nothing, so that the configuration holds. */
  #said: Extract<CostMark, { kind: "budget" }> | undefined;
  #told: Told | undefined;
  readonly #toldOfPhase = new WeakMap<Phase, Told>();

  mark(mark: BudgetMark, open: readonly Phase[]): void {
    if (mark.kind === "budget") {
      this.#said = mark;
      // One that is set anew is told of anew.
      this.#told = undefined;
      return;
    }
    const { label, usd, level } = mark;
    if (label === undefined) {
      this.#told = { usd, level };
      return;
    }
    // Phases of one label can lie in each other. The outer one has spent as much at least, and is told of first.
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
    // Of another sum nothing was told.
    told: told?.usd === usd ? told.level : undefined,
  };
}
