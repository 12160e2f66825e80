import type { MarkedBudget } from "./marks.ts";
import { Tally } from "./tally.ts";

export interface PhaseStart {
  readonly label: string;
  /** With the phases around it, the outermost first. */
  readonly path: readonly string[];
  /** Unix milliseconds. */
  readonly startedAt: number;
  readonly budget: MarkedBudget | undefined;
}

/** What is spent between two marks, with what is spent in the phases inside it. */
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
