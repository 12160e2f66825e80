import type { Usage } from "../../../provider/reply.ts";
import type { Spending } from "./script.ts";

/** USD per million tokens. */
export interface Prices {
  readonly input: number;
  readonly output: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
}

/** The cost of a run, including its summaries. */
export interface Bill {
  readonly requests: number;
  readonly summaries: number;
  /** Of all requests: read, written to the cache, or neither. */
  readonly tokensSent: number;
  readonly usd: number;
  /** The part for tokens written to the cache. */
  readonly writeUsd: number;
  /** Share of the sent tokens that were read from the cache. */
  readonly hitRate: number;
  /** Requests that read less than the previous request had left in the cache. */
  readonly breaks: number;
  readonly missedTokens: number;
  /** The part of the requests that only get earlier results back. */
  readonly againUsd: number;
}

/** Smaller losses come from the service's own granularity. */
const noiseTokens = 1_024;

export function billOf({ requests, summaries, again }: Spending, prices: Prices): Bill {
  const all = [...requests, ...summaries];
  const tokensSent = sum(all, sentIn);
  const missed = requests.flatMap((usage, at) => {
    const before = requests[at - 1];
    const kept = before === undefined ? 0 : Math.min(sentIn(before), sentIn(usage));
    return kept - usage.cacheReadTokens > noiseTokens ? [kept - usage.cacheReadTokens] : [];
  });
  return {
    requests: requests.length,
    summaries: summaries.length,
    tokensSent,
    writeUsd: price(
      sum(all, ({ cacheWriteTokens }) => cacheWriteTokens),
      prices.cacheWrite,
    ),
    usd: costOf(all, prices),
    hitRate: sum(all, ({ cacheReadTokens }) => cacheReadTokens) / tokensSent,
    breaks: missed.length,
    missedTokens: missed.reduce((total, tokens) => total + tokens, 0),
    againUsd: costOf(again, prices),
  };
}

function costOf(usages: readonly Usage[], prices: Prices): number {
  return sum(
    usages,
    ({ inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens }) =>
      price(inputTokens, prices.input) +
      price(outputTokens, prices.output) +
      price(cacheReadTokens, prices.cacheRead) +
      price(cacheWriteTokens, prices.cacheWrite),
  );
}

function price(tokens: number, each: number): number {
  return (tokens * each) / 1_000_000;
}

function sum(usages: readonly Usage[], of: (usage: Usage) => number): number {
  return usages.reduce((total, usage) => total + of(usage), 0);
}

function sentIn({ inputTokens, cacheReadTokens, cacheWriteTokens }: Usage): number {
  return inputTokens + cacheReadTokens + cacheWriteTokens;
}
