import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import { AskRefused } from "../../extension/engine-port.ts";
import { isRecord } from "../../protocol/objects.ts";
import type { Checkpoint } from "./fold.ts";
import { isLabel, type OnBudget } from "./marks.ts";
import { hasPrices, unpriced } from "./prices.ts";
import { phaseToEnd, phaseTooMany } from "./refusals.ts";
import { type BudgetFacts, budgetFacts, type PhaseFacts, phaseFacts } from "./report.ts";
import type { CostTracker } from "./tracker.ts";

/** Actions for clients and the command `/cost`. Each writes one entry. */
export class CostActions {
  readonly #tracker: CostTracker;

  constructor(tracker: CostTracker) {
    this.#tracker = tracker;
  }

  checkpoint(params: unknown, ctx: ExtensionContext): Checkpoint {
    const checkpoint = this.#tracker.mark({ kind: "checkpoint", label: labelOf(params) }, ctx);
    return must(checkpoint);
  }

  startPhase(params: unknown, ctx: ExtensionContext): { readonly phase: PhaseFacts } {
    const label = labelOf(params);
    const { budgetUsd, rule } = budgetOf(params);
    const tooMany = phaseTooMany(this.#tracker.update(ctx));
    if (tooMany !== undefined) throw new AskRefused(tooMany.refused, tooMany.message);
    if (budgetUsd !== undefined) requirePrices(ctx);
    const budget = budgetUsd === undefined ? undefined : { usd: budgetUsd, ...rule };
    this.#tracker.mark({ kind: "phaseStart", label, ...(budget === undefined ? {} : { budget }) }, ctx);
    const phase = must(this.#tracker.update(ctx).openPhases.at(-1));
    return { phase: phaseFacts(phase, this.#tracker.rules, Date.now()) };
  }

  endPhase(params: unknown, ctx: ExtensionContext): { readonly phase: PhaseFacts } {
    const wanted = isRecord(params) && params["label"] !== undefined ? labelOf(params) : undefined;
    const phase = phaseToEnd(this.#tracker.update(ctx), wanted);
    if ("refused" in phase) throw new AskRefused(phase.refused, phase.message);
    this.#tracker.mark({ kind: "phaseEnd", label: phase.label }, ctx);
    return { phase: phaseFacts(phase, this.#tracker.rules, Date.now()) };
  }

  setBudget(params: unknown, ctx: ExtensionContext): { readonly budget: BudgetFacts | null } {
    const { budgetUsd, rule } = budgetOf(params);
    if (budgetUsd !== undefined) requirePrices(ctx);
    this.#tracker.mark({ kind: "budget", usd: budgetUsd ?? null, ...rule }, ctx);
    this.#tracker.checkPrices(ctx);
    const budget = this.#tracker
      .update(ctx)
      .budgets(this.#tracker.rules)
      .find(({ phase }) => phase === undefined);
    return { budget: budget === undefined ? null : budgetFacts(budget) };
  }
}

function requirePrices(ctx: ExtensionContext): void {
  if (!hasPrices(ctx)) throw new AskRefused("price_unknown", unpriced(ctx));
}

/** The daemon has validated the params; the command has not. */
function labelOf(params: unknown): string {
  const label = isRecord(params) ? params["label"] : undefined;
  if (isLabel(label)) return label.toWellFormed();
  throw new AskRefused("invalid_params", "A label has 1 to 120 characters, and is not blank.");
}

interface WantedBudget {
  readonly budgetUsd: number | undefined;
  /** Empty: as configured. */
  readonly rule: { readonly onBudget?: OnBudget };
}

function budgetOf(params: unknown): WantedBudget {
  if (!isRecord(params)) return { budgetUsd: undefined, rule: {} };
  const { budgetUsd, onBudget } = params;
  return {
    budgetUsd: typeof budgetUsd === "number" ? budgetUsd : undefined,
    rule: onBudget === "warn" || onBudget === "stop" ? { onBudget } : {},
  };
}

function must<T>(value: T | undefined): T {
  if (value === undefined) throw new Error("The entry was not taken by the session.");
  return value;
}
