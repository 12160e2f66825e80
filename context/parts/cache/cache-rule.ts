import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { Places } from "../../../extension/engine-port.ts";
import { configOf } from "../optimisation/part-context.ts";
import { type BranchUse, branchUse } from "./branch-use.ts";
import { ChangeLog } from "./change-log.ts";
import { type CachePrices, cacheLifetimeMs, cachePrices } from "./prices.ts";

/** A change to earlier context that a part would make. */
export interface ProposedChange {
  /** Tokens that each later request has less. */
  readonly freedTokens: number;
  /**
   * Tokens behind the first change, to the end or to the first place that changes anyway: they are written anew. 0 where
   * the change stands behind one that is made in any case, such as a compaction.
   */
  readonly suffixTokens: number;
  /** The context is above what a part allows it to be: it is made smaller whatever that costs. Default false. */
  readonly isAboveMax?: boolean;
}

export interface CacheDecision {
  readonly act: boolean;
  readonly why: "saves" | "cold" | "no_price" | "above_max" | "too_small" | "too_dear";
  /** What it costs once, and saves with each request. 0 where there is no price, and nothing once where the cache is cold. */
  readonly costUsd: number;
  readonly savedUsdPerRequest: number;
}

/** Says whether a change to earlier context is worth the provider's cache. */
export interface CacheRule {
  decide(change: ProposedChange, ctx: ExtensionContext): CacheDecision;
  /** At least so many tokens are freed at a time, while the cache is warm. */
  minBatchTokens(ctx: ExtensionContext): number;
  /**
   * Nothing is lost by a change now: the last request is longer ago than a cache lives, or was another model's, or the
   * transcript was compacted or its branch changed behind it.
   */
  isCold(ctx: ExtensionContext): boolean;
  /** Requests that are still to come, by the configuration or by this session's prompts so far. */
  expectedRequests(ctx: ExtensionContext): number;
  /** The entries that a part has changed, so that the loss of the cache is put down to it. */
  changed(part: string, entryIds: readonly string[]): void;
  /** Text at the end of the request in the making that no later one has: no mark is to rest on it. */
  passing(text: string): void;
  /** What a part's changes have cost so far: tokens that were written anew for them, and USD. */
  spent(part: string): { readonly tokens: number; readonly usd: number };
  readonly changes: ChangeLog;
}

/** By how much the savings must exceed the cost. */
const margin = 1.2;
const maxShareOfWindow = 0.15;
const perMillion = 1_000_000;

export interface RuleFacts {
  readonly isCold: boolean;
  readonly prices: CachePrices | undefined;
  readonly expectedRequests: number;
  readonly minBatchTokens: number;
}

/**
 * Acts only if freed × readPrice × expectedRequests > 1.2 × suffix × (missPrice − readPrice), in batches of a least size;
 * or where the cache is cold, or the context above its greatest size. Without a price for what is cached only the size of
 * the batch counts.
 */
export function decideByRule(change: ProposedChange, facts: RuleFacts): CacheDecision {
  const { freedTokens, suffixTokens, isAboveMax = false } = change;
  const { isCold, prices, expectedRequests, minBatchTokens } = facts;
  const { read, miss } = prices ?? { read: 0, miss: 0 };
  const savedUsdPerRequest = (Math.max(0, freedTokens) * read) / perMillion;
  const costUsd = isCold ? 0 : (suffixTokens * Math.max(0, miss - read)) / perMillion;
  const decided = (act: boolean, why: CacheDecision["why"]): CacheDecision => ({
    act,
    why,
    costUsd,
    savedUsdPerRequest,
  });
  if (freedTokens <= 0) return decided(false, "too_small");
  if (isAboveMax) return decided(true, "above_max");
  if (isCold) return decided(true, "cold");
  if (freedTokens < minBatchTokens) return decided(false, "too_small");
  if (prices === undefined) return decided(true, "no_price");
  const saves = savedUsdPerRequest * expectedRequests > margin * costUsd;
  return decided(saves, saves ? "saves" : "too_dear");
}

/** The rule for one session. What it goes by stands in the session, so that it survives the session's pi. */
export function createCacheRule(places: Pick<Places, "memory">): CacheRule {
  const config = () => configOf(places);
  const changes = new ChangeLog();
  const minBatchTokens = ({ model }: ExtensionContext): number => {
    const window = model?.contextWindow ?? Number.POSITIVE_INFINITY;
    return Math.min(config().cache.minBatchTokens, Math.floor(maxShareOfWindow * window));
  };
  const expected = ({ requestsPerPrompt }: BranchUse): number => {
    const configured = config().masking.expectedRequests;
    return configured === "auto" ? requestsPerPrompt : configured;
  };
  return {
    changes,
    minBatchTokens,
    isCold: (ctx) => isColdFor(branchUse(ctx.sessionManager), ctx),
    expectedRequests: (ctx) => expected(branchUse(ctx.sessionManager)),
    changed: (part, entryIds) => changes.add(part, entryIds),
    passing: (text) => changes.passing(text),
    spent: (part) => places.memory.audit?.ledger.lost(`edit:${part}`) ?? { tokens: 0, usd: 0 },
    decide: (change, ctx) => {
      const use = branchUse(ctx.sessionManager);
      return decideByRule(change, {
        isCold: isColdFor(use, ctx),
        prices: cachePrices(ctx.model?.cost, use.last?.inputTokens ?? 0),
        expectedRequests: expected(use),
        minBatchTokens: minBatchTokens(ctx),
      });
    },
  };
}

function isColdFor({ models, usedAt, isBroken }: BranchUse, { model }: ExtensionContext): boolean {
  if (models.length === 0 || isBroken) return true;
  if (model !== undefined && !models.includes(`${model.provider}/${model.id}`)) return true;
  return Date.now() - usedAt > cacheLifetimeMs(model);
}
