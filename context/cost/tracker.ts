import type { ExtensionAPI, ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { HostPort } from "../../extension/engine-port.ts";
import type { OptimisationConfig } from "../../protocol/optimisation/config.ts";
import type { PartStatus } from "../parts/optimisation/part-states.ts";
import type { BudgetState } from "./budgets.ts";
import { type Checkpoint, CostFold } from "./fold.ts";
import { COST_MARK_TYPE, type CostMark, markData } from "./marks.ts";
import { hasPrices, unpriced } from "./prices.ts";

type CostConfig = OptimisationConfig["cost"];

/** Channel of `pi.events` that announces each checkpoint to other extensions as a `CostCheckpointEvent`. */
export const COST_CHANNEL = "cost_checkpoint";

export interface CostNeeds {
  readonly pi: Pick<ExtensionAPI, "appendEntry" | "events" | "getCommands" | "registerCommand">;
  readonly config: () => CostConfig;
  readonly status: PartStatus;
  readonly notify: HostPort["notify"];
  readonly fault: HostPort["fault"];
}

/** Tracks the cost of the session, writes marks, and notifies subscribers. */
export class CostTracker {
  readonly #needs: CostNeeds;
  readonly #session = new FoldOfSession();
  /** The configuration last checked against the model's prices. */
  #checked: CostConfig | undefined;
  #newest: Checkpoint | undefined;
  /** Reports that could not be recorded in the session's file, kept so that they are not repeated. */
  readonly #unrecorded = new Set<string>();

  constructor(needs: CostNeeds) {
    this.#needs = needs;
  }

  get rules(): CostConfig {
    return this.#needs.config();
  }

  sessionStarted(ctx: ExtensionContext): void {
    this.#session.forget();
    this.#unrecorded.clear();
    this.update(ctx);
    this.checkPrices(ctx);
  }

  /** Reports new checkpoints and reached budgets. */
  update(ctx: ExtensionContext): CostFold {
    const fold = this.#read(ctx);
    if (!this.rules.enabled) return fold;
    // The configuration may have changed.
    if (this.rules !== this.#checked) this.checkPrices(ctx);
    for (const budget of fold.budgets(this.rules)) this.#tell(budget, ctx);
    return fold;
  }

  /** Handles the end of a turn or run. */
  ended(what: "turn" | "run", ctx: ExtensionContext): void {
    const { enabled, autoCheckpoint } = this.rules;
    if (!enabled) return;
    const fold = this.update(ctx);
    if (autoCheckpoint === what && !fold.sinceCheckpoint.isEmpty) this.mark({ kind: "checkpoint", label: what }, ctx);
  }

  /** Writes an entry, and returns the checkpoint that it creates. */
  mark(mark: CostMark, ctx: ExtensionContext): Checkpoint | undefined {
    this.#read(ctx);
    this.#needs.pi.appendEntry(COST_MARK_TYPE, markData(mark));
    const before = this.#newest;
    this.update(ctx);
    return this.#newest === before ? undefined : this.#newest;
  }

  /** A budget in USD needs a model with prices. */
  checkPrices(ctx: ExtensionContext): void {
    this.#checked = this.rules;
    if (!this.rules.enabled) return;
    const budgets = this.#session.read(ctx).fold.budgets(this.rules);
    if (budgets.length === 0 || hasPrices(ctx)) this.#needs.status.restored();
    else this.#needs.status.degraded(`price_unknown: ${unpriced(ctx)}`);
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

  #read(ctx: ExtensionContext): CostFold {
    const { fold, checkpoints } = this.#session.read(ctx);
    for (const checkpoint of checkpoints) {
      this.#newest = checkpoint;
      if (this.rules.enabled) this.#checkpointed(checkpoint);
    }
    return fold;
  }

  #checkpointed(checkpoint: Checkpoint): void {
    const { pi, notify, fault } = this.#needs;
    notify("cost/checkpointed", checkpoint);
    try {
      pi.events.emit(COST_CHANNEL, checkpoint.event);
    } catch (thrown) {
      fault("cost_checkpoint", thrown, "cost");
    }
  }

  #tell(budget: BudgetState, ctx: ExtensionContext): void {
    const { phase, usd, onBudget, spentUsd, level } = budget;
    if (level === undefined || isTold(budget)) return;
    const key = JSON.stringify([phase?.path, phase?.startedAt, usd, level]);
    if (this.#unrecorded.has(key)) return;
    const of = phase === undefined ? {} : { label: phase.label };
    // Written first, so that it is never reported twice.
    this.#needs.pi.appendEntry(COST_MARK_TYPE, markData({ kind: "reached", ...of, usd, level }));
    const after = this.#read(ctx).budgets(this.rules);
    if (after.some((one) => one.phase === phase && !isTold(one))) this.#unrecorded.add(key);
    this.#needs.notify("cost/budgetReached", {
      scope: phase === undefined ? "session" : "phase",
      ...of,
      budgetUsd: usd,
      spentUsd,
      level,
      action: onBudget,
    });
  }
}

function isTold({ level, told }: BudgetState): boolean {
  return told === level || told === "spent";
}

type Session = Pick<ExtensionContext, "sessionManager">;
type Entries = ReturnType<ExtensionContext["sessionManager"]["getEntries"]>;

/** The cost of the session in this pi: a fold over the session's entries that reads only new ones. */
export class FoldOfSession {
  #fold: CostFold | undefined;
  /** Number of entries read, and the last of them. */
  #count = 0;
  #last: Entries[number] | undefined;

  /** The session in this pi may have changed. */
  forget(): void {
    this.#fold = undefined;
  }

  /** Returns the fold and the checkpoints created since the last call; none at first. */
  read({ sessionManager }: Session): { readonly fold: CostFold; readonly checkpoints: readonly Checkpoint[] } {
    const entries = sessionManager.getEntries();
    // Entries of a session are only appended; otherwise the session has changed.
    const before =
      this.#count === 0 || (entries.length >= this.#count && entries[this.#count - 1] === this.#last)
        ? this.#fold
        : undefined;
    const fold = before ?? new CostFold();
    const checkpoints: Checkpoint[] = [];
    for (let at = before === undefined ? 0 : this.#count; at < entries.length; at++) {
      const checkpoint = fold.add(entries[at]);
      if (checkpoint !== undefined) checkpoints.push(checkpoint);
    }
    this.#fold = fold;
    this.#count = entries.length;
    this.#last = entries.at(-1);
    return { fold, checkpoints: before === undefined ? [] : checkpoints };
  }
}
