import { addUsage, isNoUsage, noUsage, type Usage, withoutUsage } from "./usage.ts";

/** What the tokens were used for. */
export type Source = (typeof sources)[number];
export const sources = [
  "assistant",
  "tool",
  "compaction",
  "branch_summary",
  "cache_warm",
  "discarded",
  "compaction_failed",
] as const;

/** Cost of one entry. */
export interface Spending {
  readonly usage: Usage;
  readonly source: Source;
  /** `provider/id`; {@link unnamedModel} if the entry names none. */
  readonly model: string;
  readonly requests: number;
  readonly isUnpriced: boolean;
}

/** Model name for tools and summaries, because pi does not store their model. */
export const unnamedModel = "unknown";
/** Collects all models after the first ones. */
const otherModels = "other";
const maxModels = 255;

/** Sum of entries: total, by model and by source. */
export class Tally {
  total: Usage = noUsage;
  requests = 0;
  isEstimated = false;
  readonly #byModel = new Map<string, Usage>();
  readonly #bySource = new Map<Source, Usage>();

  add({ usage, source, model, requests, isUnpriced }: Spending): void {
    into(this.#bySource, source, usage);
    this.isEstimated ||= isUnpriced;
    // pi's sums do not include it, so ours do not either.
    if (source === "compaction_failed") return;
    this.total = addUsage(this.total, usage);
    this.requests += requests;
    const isKept = this.#byModel.has(model) || this.#byModel.size < maxModels;
    into(this.#byModel, isKept ? model : otherModels, usage);
  }

  /** Moves the usage of an attempt that was not used. */
  discard(usage: Usage): void {
    const left = withoutUsage(this.#bySource.get("assistant") ?? noUsage, usage);
    if (left.totalTokens === 0) this.#bySource.delete("assistant");
    else this.#bySource.set("assistant", left);
    into(this.#bySource, "discarded", usage);
  }

  get isEmpty(): boolean {
    return this.requests === 0 && isNoUsage(this.total);
  }

  byModel(): Record<string, Usage> {
    return Object.fromEntries(this.#byModel);
  }

  bySource(): Record<string, Usage> {
    return Object.fromEntries(this.#bySource);
  }
}

function into<K>(sums: Map<K, Usage>, key: K, usage: Usage): void {
  const before = sums.get(key);
  if (before === undefined && isNoUsage(usage)) return;
  sums.set(key, before === undefined ? usage : addUsage(before, usage));
}
