import type { MarkedBudget } from "./marks.ts";
import { Tally } from "./tally.ts";

export interface PhaseStart {
  readonly label: string;
  /** Labels of the enclosing phases, outermost first, and its own. */
  readonly path: readonly string[];
  /** Unix milliseconds. */
  readonly startedAt: number;
  readonly budget: MarkedBudget | undefined;
}

/** Cost between two marks, including nested phases. */
export class Phase {
  readonly label: string;
  readonly path: readonly string[];
  /** Unix milliseconds. */
  readonly startedAt: number;
  readonly budget: MarkedBudget | undefined;
  readonly tally = new Tally();
  #endedAt: number | undefined;

  constructor({ label, path, startedAt, budget }: PhaseStart) {
    this.label = label;
    this.path = path;
    this.budget = budget;
    this.startedAt = startedAt;
  }

  get isOpen(): boolean {
    return this.#endedAt === undefined;
  }

  end(at: number): void {
    this.#endedAt ??= at;
  }

  wallMs(now: number): number {
    return Math.max(0, (this.#endedAt ?? now) - this.startedAt);
  }
}
