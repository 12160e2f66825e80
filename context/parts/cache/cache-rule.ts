import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { Kept } from "../../../extension/memory.ts";
import type { OptimisationConfig } from "../../../protocol/optimisation/config.ts";
import type { AuditMemory } from "./auditor.ts";
import { type BranchUse, branchUse } from "./branch-use.ts";
import { ChangeLog } from "./change-log.ts";
import { type CachePrices, cacheLifetimeMs, cachePrices } from "./prices.ts";

/** A proposed change to earlier context. */
export interface ProposedChange {
  /** Tokens that each later request saves. */
  readonly freedTokens: number;
  /**
   * Tokens after the first change, up to the end or to the first place that changes anyway; they must be cached again. 0
   * if the change comes after an unavoidable one, such as a compaction.
   */
  readonly suffixTokens: number;
  /** The context exceeds a part's maximum, so it is reduced at any cost. Default false. */
  readonly isAboveMax?: boolean;
}

export interface CacheDecision {
  readonly act: boolean;
  readonly why: "saves" | "cold" | "no_price" | "above_max" | "too_small" | "too_dear";
  /** The one-time cost and the saving per request. 0 without a price; the cost is also 0 if the cache is cold. */
  readonly costUsd: number;
  readonly savedUsdPerRequest: number;
}

/** Decides whether a change to earlier context is worth losing the provider's cache. */
export interface CacheRule {
  decide(change: ProposedChange, ctx: ExtensionContext): CacheDecision;
  /** The minimum of freed tokens per batch while the cache is warm. */
  minBatchTokens(ctx: ExtensionContext): number;
  /**
   * Whether a change now loses no cache: the cache has expired, the last request used another model, or a compaction or a
   * change of branch followed it.
   */
  isCold(ctx: ExtensionContext): boolean;
  /** Expected further requests, by the configuration or by this session's earlier prompts. */
  expectedRequests(ctx: ExtensionContext): number;
  /** Attributes the cache loss by changes to these entries to a part. */
  changed(part: string, entryIds: readonly string[]): void;
  /** Declares text at the end of the current request that later requests do not have; no cache mark is placed on it. */
  passing(text: string): void;
  /** The cost of a part's changes so far: tokens cached again, and USD. */
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
 * Acts only if freed × readPrice × expectedRequests > 1.2 × suffix × (missPrice − readPrice), in batches of a minimum
 * size; or if the cache is cold, or the context exceeds its maximum. Without a price for cached tokens, only the batch
 * size counts.
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

export interface CacheRuleNeeds {
  readonly config: () => Pick<OptimisationConfig, "cache" | "masking">;
  readonly audit: Kept<AuditMemory>;
}

/** The rule for one session. Its input is in the session's file, so that it survives a restart of pi. */
export function createCacheRule({ config, audit }: CacheRuleNeeds): CacheRule {
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
    spent: (part) => audit.value?.ledger.lost(`edit:${part}`) ?? { tokens: 0, usd: 0 },
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
