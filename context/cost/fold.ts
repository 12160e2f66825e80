import { isRecord } from "../../protocol/objects.ts";
import { BudgetLedger, type BudgetRules, type BudgetState } from "./budgets.ts";
import { COST_MARK_TYPE, type CostMark, MAX_LABEL_CHARS, MAX_OPEN_PHASES, readMark } from "./marks.ts";
import { Phase } from "./phase.ts";
import { spendingOf } from "./spending.ts";
import { type Spending, Tally, unnamedModel } from "./tally.ts";
import type { Usage } from "./usage.ts";

/** A `cost_checkpoint` event, with additional data. */
export interface Checkpoint {
  readonly event: {
    readonly type: "cost_checkpoint";
    readonly label: string;
    readonly deltaTokens: Usage;
    readonly cumulativeTokens: Usage;
    readonly cumulativeCost: number;
  };
  readonly detail: {
    readonly deltaCost: number;
    readonly byModel: Record<string, Usage>;
    readonly bySource: Record<string, Usage>;
    readonly requests: number;
    readonly wallMs: number;
    readonly phasePath: string[];
    readonly estimated: boolean;
  };
}

/** Number of newest checkpoints and ended phases kept. */
export const maxCheckpoints = 100;
export const maxPhases = 1_000;

/** The last answer, until it is known to be used. */
interface Attempt {
  readonly id: string;
  readonly usage: Usage;
  /** The sums that include it. */
  readonly tallies: readonly Tally[];
}

/**
 * The cost of a session, as a fold over the entries of its file in order, including abandoned branches, as in pi's own
 * sums. The same entries give the same state in pi, in the daemon, after a resume and in a fork.
 *
 * An attempt is `discarded` if it failed, was aborted, or was removed from the context before the next answer, as pi
 * does before a retry after a compaction.
 */
export class CostFold {
  readonly whole = new Tally();
  #delta = new Tally();
  /** Outermost first. */
  #open: Phase[] = [];
  readonly #phases: Phase[] = [];
  readonly #checkpoints: Checkpoint[] = [];
  /** Total number. */
  #checkpointCount = 0;
  #attempt: Attempt | undefined;
  readonly #budgets = new BudgetLedger();
  /** Unix milliseconds of the first entry, the last checkpoint, and the current entry. */
  #checkpointAt: number | undefined;
  #now = 0;

  /** Adds the file's next entry, which is untrusted. Returns the checkpoint that it creates, if any. */
  add(entry: unknown): Checkpoint | undefined {
    if (!isRecord(entry) || entry["type"] === "session") return undefined;
    this.pass(entry["timestamp"]);
    if (entry["type"] === "custom") {
      const mark = entry["customType"] === COST_MARK_TYPE ? readMark(entry["data"]) : undefined;
      return mark === undefined ? undefined : this.#mark(mark);
    }
    if (entry["type"] === "context_edit") this.#edited(entry["targetId"], entry["replacement"]);
    const spending = spendingOf(entry);
    const isAnswer = isRecord(entry["message"]) && entry["message"]["role"] === "assistant";
    if (isAnswer) this.#attempt = undefined;
    if (spending === undefined) return undefined;
    const tallies = this.#spend(spending);
    const { id } = entry;
    if (isAnswer && spending.source === "assistant" && typeof id === "string") {
      this.#attempt = { id, usage: spending.usage, tallies };
    }
    return undefined;
  }

  /** Newest last. */
  get checkpoints(): readonly Checkpoint[] {
    return this.#checkpoints;
  }

  get checkpointCount(): number {
    return this.#checkpointCount;
  }

  /** Cost since the last checkpoint. */
  get sinceCheckpoint(): Tally {
    return this.#delta;
  }

  /** In order of their start. */
  get phases(): readonly Phase[] {
    return this.#phases;
  }

  /** Outermost first. */
  get openPhases(): readonly Phase[] {
    return this.#open;
  }

  /** Returns the current budgets: the session's, then those of the open phases. */
  budgets(rules: BudgetRules): readonly BudgetState[] {
    return this.#budgets.states(rules, this.whole.total.cost.total, this.#open);
  }

  #mark(mark: CostMark): Checkpoint | undefined {
    switch (mark.kind) {
      case "checkpoint":
        return this.#checkpoint(mark.label);
      case "phaseStart":
        return this.#start(mark);
      case "phaseEnd":
        return this.#end(mark.label);
      case "failedSummary": {
        const { usage, model = unnamedModel } = mark;
        this.#spend({ usage, model, source: "compaction_failed", requests: 0, isUnpriced: false });
        return undefined;
      }
      default:
        this.#budgets.mark(mark, this.#open);
        return undefined;
    }
  }

  #start({ label, budget }: Extract<CostMark, { kind: "phaseStart" }>): Checkpoint | undefined {
    if (this.#open.length >= MAX_OPEN_PHASES) return undefined;
    // Earlier entries do not belong to it.
    const before = this.#delta.isEmpty ? undefined : this.#checkpoint(startOf(`before ${label}`));
    const path = [...this.#open.map((phase) => phase.label), label];
    const phase = new Phase({ label, path, startedAt: this.#now, budget });
    this.#open = [...this.#open, phase];
    this.#phases.push(phase);
    if (this.#phases.length > maxPhases) this.#forgetPhase();
    return before;
  }

  #forgetPhase(): void {
    const at = this.#phases.findIndex(({ isOpen }) => !isOpen);
    if (at >= 0) this.#phases.splice(at, 1);
  }

  #end(label: string): Checkpoint | undefined {
    const at = this.#open.findLastIndex((phase) => phase.label === label);
    if (at < 0) return undefined;
    const checkpoint = this.#checkpoint(label);
    for (const phase of this.#open.slice(at)) phase.end(this.#now);
    this.#open = this.#open.slice(0, at);
    return checkpoint;
  }

  #checkpoint(label: string): Checkpoint {
    const delta = this.#delta;
    this.#delta = new Tally();
    const since = this.#checkpointAt ?? this.#now;
    this.#checkpointAt = this.#now;
    const { total } = this.whole;
    const checkpoint: Checkpoint = {
      event: {
        type: "cost_checkpoint",
        label,
        deltaTokens: delta.total,
        cumulativeTokens: total,
        cumulativeCost: total.cost.total,
      },
      detail: {
        deltaCost: delta.total.cost.total,
        byModel: delta.byModel(),
        bySource: delta.bySource(),
        requests: delta.requests,
        wallMs: this.#now - since,
        phasePath: this.#open.map((phase) => phase.label),
        estimated: delta.isEstimated,
      },
    };
    this.#checkpointCount += 1;
    this.#checkpoints.push(checkpoint);
    if (this.#checkpoints.length > maxCheckpoints) this.#checkpoints.shift();
    return checkpoint;
  }

  #spend(spending: Spending): readonly Tally[] {
    const tallies = [this.whole, this.#delta, ...this.#open.map((phase) => phase.tally)];
    for (const tally of tallies) tally.add(spending);
    return tallies;
  }

  #edited(targetId: unknown, replacement: unknown): void {
    const attempt = this.#attempt;
    if (attempt === undefined || replacement !== null || targetId !== attempt.id) return;
    this.#attempt = undefined;
    for (const tally of attempt.tallies) tally.discard(attempt.usage);
  }

  /** Records the time of an entry without costs. Times in a file are untrusted; the clock never goes back. */
  pass(timestamp: unknown): void {
    const at = typeof timestamp === "string" ? Date.parse(timestamp) : Number.NaN;
    if (at > this.#now) this.#now = at;
    this.#checkpointAt ??= Number.isNaN(at) ? undefined : at;
  }
}

/** Shortens a label to the allowed length without splitting a character. */
function startOf(label: string): string {
  return [...label].slice(0, MAX_LABEL_CHARS).join("");
}
