import type { ExtensionContext } from "@earendil-works/pi-coding-agent";

type Model = NonNullable<ExtensionContext["model"]>;
export type Cost = Model["cost"];

/** USD per million tokens of a prompt, in the tier of a request's size. */
export interface CachePrices {
  readonly read: number;
  /** The price of tokens outside the cache. */
  readonly miss: number;
}

/** `undefined`: the model has no price for cache reads, or one that is not a number: an extension can register any. */
export function cachePrices(cost: Cost | undefined, inputTokens: number): CachePrices | undefined {
  const rates = cost === undefined ? undefined : tierOf(cost, inputTokens);
  if (rates === undefined || !(rates.cacheRead > 0)) return undefined;
  // Most services do not charge for cache writes; uncached tokens cost the input price.
  const prices = { read: rates.cacheRead, miss: rates.cacheWrite > 0 ? rates.cacheWrite : rates.input };
  return Number.isFinite(prices.read) && Number.isFinite(prices.miss) ? prices : undefined;
}

/** The extra cost of these tokens compared to a cache read. USD. */
export function missCost(cost: Cost | undefined, inputTokens: number, missedTokens: number): number {
  const prices = cachePrices(cost, inputTokens);
  return prices === undefined ? 0 : (missedTokens * Math.max(0, prices.miss - prices.read)) / 1_000_000;
}

/** The tier with the highest threshold below the size of the whole request, as in pi. */
export function tierOf(cost: Cost, inputTokens: number): Omit<Cost, "tiers"> {
  let rates: Omit<Cost, "tiers"> = cost;
  let above = -1;
  for (const tier of cost.tiers ?? []) {
    if (inputTokens <= tier.inputTokensAbove || tier.inputTokensAbove <= above) continue;
    rates = tier;
    above = tier.inputTokensAbove;
  }
  return rates;
}

const isRetainedLong = (): boolean => process.env["PI_CACHE_RETENTION"] === "long";

/** How long a service keeps a cache after its last use, for the retention that pi requests. `undefined`: pi does not know. */
export function cacheLifetimeMs(model: Model | undefined): number | undefined {
  const seconds = model?.promptCache?.[isRetainedLong() ? "long" : "short"];
  return seconds === undefined ? undefined : seconds * 1_000;
}

/** Whether a cache that was last used this long ago has most likely expired: after five minutes or an hour where pi does not know. */
export function hasLikelyExpired(ageMs: number, model: Model | undefined): boolean {
  return ageMs > (cacheLifetimeMs(model) ?? (isRetainedLong() ? 3_600_000 : 300_000));
}
