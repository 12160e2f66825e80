import { addUsage, isNoUsage, noUsage, type Usage, withoutUsage } from "./usage.ts";

/** Where tokens went. */
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

/** What one entry adds. */
export interface Spending {
  readonly usage: Usage;
  readonly source: Source;
  /** `provider/id`; {@link unnamedModel} where the entry names none. */
  readonly model: string;
  readonly requests: number;
  readonly isUnpriced: boolean;
}

/** What tools and summaries are counted under: pi does not keep which model they used. */
export const unnamedModel = "unknown";
/** All models behind the first ones. */
const otherModels = "other";
const maxModels = 255;

/** A sum of entries: in all, by model and by source. */
export class Tally {
  total: Usage = noUsage;
  requests = 0;
  isEstimated = false;
  readonly #byModel = new Map<string, Usage>();
  readonly #bySource = new Map<Source, Usage>();

  add({ usage, source, model, requests, isUnpriced }: Spending): void {
    into(this.#bySource, source, usage);
    this.isEstimated ||= isUnpriced;
    // In no sum of pi's, so in none of ours.
    if (source === "compaction_failed") return;
    this.total = addUsage(this.total, usage);
    this.requests += requests;
    const isKept = this.#byModel.has(model) || this.#byModel.size < maxModels;
    into(this.#byModel, isKept ? model : otherModels, usage);
  }

  /** An attempt turns out to be none that was used. */
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
