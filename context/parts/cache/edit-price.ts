import { type Cost, cachePrices, missCost } from "./prices.ts";

/** Requests that are counted at most. */
const maxRequests = 10_000;
const perMillion = 1_000_000;

/** An edit of earlier context. Tokens. */
export interface PricedEdit {
  /** That each later request saves. */
  readonly freedTokens: number;
  /** That the next request would have read from the cache and now writes again. */
  readonly missedTokens: number;
  /** The next request without the edit. */
  readonly requestTokens: number;
  /** By which each further request is larger. */
  readonly growthTokens: number;
  /** The requests that profit. */
  readonly requests: number;
  readonly cost: Cost | undefined;
}

/** The one-time loss and the sum of the savings. 0 without prices. */
export interface EditPrice {
  readonly lossUsd: number;
  readonly gainUsd: number;
}

/** The price of an edit: the tokens that it frees in each request, against the cache that it loses now. */
export function editPrice(edit: PricedEdit): EditPrice {
  const { freedTokens, missedTokens, requestTokens, growthTokens, cost } = edit;
  const requests = Math.min(edit.requests, maxRequests);
  let gainUsd = 0;
  for (let at = 0; at < requests; at += 1) {
    const size = requestTokens + at * growthTokens;
    gainUsd += Math.min(1, requests - at) * savedByReading(cost, size, freedTokens);
  }
  return { lossUsd: missCost(cost, requestTokens - freedTokens, Math.max(0, missedTokens)), gainUsd };
}

/** The requests up to the compaction at a threshold, the next one included. 0: the compaction comes first. */
export function requestsUntil(threshold: number | undefined, nextTokens: number, growthTokens: number): number {
  if (threshold === undefined) return Number.POSITIVE_INFINITY;
  if (nextTokens > threshold) return 0;
  return growthTokens > 0 ? (threshold - nextTokens) / growthTokens + 1 : Number.POSITIVE_INFINITY;
}

/** USD that a request of `size` tokens costs less without `freed` of them, all of it read. Its size decides its tier. */
export function savedByReading(cost: Cost | undefined, size: number, freed: number): number {
  return readPrice(cost, size) - readPrice(cost, Math.max(0, size - freed));
}

/** Requests between two compactions. Tokens. */
export interface Cycle {
  readonly compactsAt: number;
  /** The newest messages that a compaction keeps. */
  readonly keptTokens: number;
  readonly growthTokens: number;
}

/** The prompt, the tools and a summary, which each request of a cycle has. Tokens. */
const standingTokens = 8_000;
/** A summary, and the share of the summarised text that its request reads without a cache. */
const summary = { tokens: 3_000, readShare: 0.5 };

/** The mean price of a request's input in a cycle, with its share of the compaction. USD. */
export function pricePerRequest({ compactsAt, keptTokens, growthTokens }: Cycle, cost: Cost): number {
  const first = standingTokens + keptTokens;
  const count = (compactsAt - first) / growthTokens;
  if (!(count >= 1)) return Number.POSITIVE_INFINITY;
  // Takes at most `maxRequests` steps. With more requests, each step counts for several.
  const step = Math.max(1, count / maxRequests);
  let usd = 0;
  for (let at = 0; at < count; at += step) {
    const size = first + at * growthTokens;
    usd += Math.min(step, count - at) * (readPrice(cost, size) + missCost(cost, size, growthTokens));
  }
  const written = missCost(cost, first, first - standingTokens);
  const summarised = summary.readShare * (compactsAt - first);
  const asked = (summarised * cost.input + summary.tokens * cost.output) / perMillion;
  return (usd + written + asked) / count;
}

/** USD by which a request that an edit adds before a compaction costs more than one after that compaction. */
export function priceOfDelay(cycle: Cycle, freedTokens: number, cost: Cost): number {
  const { compactsAt, growthTokens } = cycle;
  const size = compactsAt - freedTokens / 2;
  return Math.max(0, readPrice(cost, size) + missCost(cost, size, growthTokens) - pricePerRequest(cycle, cost));
}

function readPrice(cost: Cost | undefined, tokens: number): number {
  return (tokens * (cachePrices(cost, tokens)?.read ?? 0)) / perMillion;
}
