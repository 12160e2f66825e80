import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { BudgetState } from "../../protocol/cost/budgets.ts";
import { COST_CHANNEL } from "../../protocol/cost/channel.ts";
import type { Checkpoint, CostFold } from "../../protocol/cost/fold.ts";
import { COST_MARK_TYPE, type CostMark, markData } from "../../protocol/cost/marks.ts";
import type { OptimisationConfig } from "../../protocol/optimisation/config.ts";
import type { Workbench } from "../context/optimisation/workbench.ts";
import { addCostCommand } from "./command.ts";
import { FoldOfSession } from "./fold-of-session.ts";
import { CostOrders } from "./orders.ts";

type CostConfig = OptimisationConfig["cost"];

/** What a session costs: checkpoints, phases and budgets. It only ever adds entries of its own to the session. */
export function addCost(bench: Workbench): void {
  const desk = new CostDesk(bench);
  const orders = new CostOrders(bench, desk);
  bench.answer("cost/checkpoint", (params, ctx) => orders.checkpoint(params, ctx));
  bench.answer("cost/startPhase", (params, ctx) => orders.startPhase(params, ctx));
  bench.answer("cost/endPhase", (params, ctx) => orders.endPhase(params, ctx));
  bench.answer("cost/setBudget", (params, ctx) => orders.setBudget(params, ctx));
  bench.answer("cost/refresh", (_params, ctx) => {
    desk.look(ctx);
    return {};
  });
  bench.onSession((ctx) => desk.sessionStarted(ctx), "cost");
  bench.boundary.contribute("cost", ({ hook, ctx }) => {
    if (hook === "turn_end") desk.ended("turn", ctx);
    return undefined;
  });
  bench.on("cost", "agent_settled", (_event, ctx) => desk.ended("run", ctx));
  bench.on("cost", "session_compact", (_event, ctx) => void desk.look(ctx));
  bench.on("cost", "session_tree", (_event, ctx) => void desk.look(ctx));
  bench.on("cost", "model_select", (_event, ctx) => desk.checkPrices(ctx));
  bench.inspect("cost", (ctx) => desk.figures(ctx));
  addCostCommand(bench, orders, desk);
}

/** Sees what was spent, writes marks, and tells. */
export class CostDesk {
  readonly #bench: Workbench;
  readonly #session = new FoldOfSession();

  constructor(bench: Workbench) {
    this.#bench = bench;
  }

  get rules(): CostConfig {
    return this.#bench.config().cost;
  }

  sessionStarted(ctx: ExtensionContext): void {
    this.#session.forget();
    this.look(ctx);
    this.checkPrices(ctx);
  }

  /** Tells what is new: checkpoints, and budgets that are reached. */
  look(ctx: ExtensionContext): CostFold {
    const fold = this.#read(ctx);
    if (!this.rules.enabled) return fold;
    for (const budget of fold.budgets(this.rules)) this.#tell(budget, ctx);
    return fold;
  }

  /** A turn has ended, or a run. */
  ended(what: "turn" | "run", ctx: ExtensionContext): void {
    const { enabled, autoCheckpoint } = this.rules;
    if (!enabled) return;
    const fold = this.look(ctx);
    if (autoCheckpoint === what && !fold.sinceCheckpoint.isEmpty) this.mark({ kind: "checkpoint", label: what }, ctx);
  }

  /** Writes an entry, and gives the checkpoint that it makes. */
  mark(mark: CostMark, ctx: ExtensionContext): Checkpoint | undefined {
    this.#read(ctx);
    this.#bench.pi.appendEntry(COST_MARK_TYPE, markData(mark));
    const before = this.#newest;
    this.look(ctx);
    return this.#newest === before ? undefined : this.#newest;
  }

  /** A budget in USD cannot be kept where nothing has a price. */
  checkPrices(ctx: ExtensionContext): void {
    if (!this.rules.enabled) return;
    const budgets = this.#session.read(ctx).fold.budgets(this.rules);
    if (budgets.length === 0 || hasPrices(ctx)) this.#bench.restored("cost");
    else this.#bench.degraded("cost", `price_unknown: ${unpriced(ctx)}`);
  }

  figures(ctx: ExtensionContext) {
    const fold = this.#read(ctx);
    return {
      savedTokens: 0,
      savedUsd: 0,
      spentTokens: 0,
      spentUsd: 0,
      figures: {
        totalUsd: fold.whole.total.cost.total,
        requests: fold.whole.requests,
        checkpoints: fold.checkpointCount,
        openPhases: fold.openPhases.length,
      },
    };
  }

  #newest: Checkpoint | undefined;

  #read(ctx: ExtensionContext): CostFold {
    const { fold, checkpoints } = this.#session.read(ctx);
    for (const checkpoint of checkpoints) {
      this.#newest = checkpoint;
      if (this.rules.enabled) this.#checkpointed(checkpoint);
    }
    return fold;
  }

  #checkpointed(checkpoint: Checkpoint): void {
    const { pi, notify, fault } = this.#bench;
    notify("cost/checkpointed", checkpoint);
    try {
      pi.events.emit(COST_CHANNEL, checkpoint.event);
    } catch (thrown) {
      fault("cost_checkpoint", thrown, "cost");
    }
  }

  #tell({ phase, usd, onBudget, spentUsd, level, told }: BudgetState, ctx: ExtensionContext): void {
    if (level === undefined || told === level || told === "spent") return;
    const of = phase === undefined ? {} : { label: phase.label };
    // Written first: what is told twice is told once too often.
    this.#bench.pi.appendEntry(COST_MARK_TYPE, markData({ kind: "reached", ...of, usd, level }));
    this.#read(ctx);
    this.#bench.notify("cost/budgetReached", {
      scope: phase === undefined ? "session" : "phase",
      ...of,
      budgetUsd: usd,
      spentUsd,
      level,
      action: onBudget,
    });
  }
}

/** Whether the model has any price. */
export function hasPrices({ model }: Pick<ExtensionContext, "model">): boolean {
  return model !== undefined && Object.values(model.cost ?? {}).some((price) => typeof price === "number" && price > 0);
}

/** Why no budget can be kept. */
export function unpriced({ model }: Pick<ExtensionContext, "model">): string {
  if (model === undefined) return "There is no model, so that no budget in USD can be kept.";
  return `${model.provider}/${model.id} has no prices, so that no budget in USD can be kept.`;
}
