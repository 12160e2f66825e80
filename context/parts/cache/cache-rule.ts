import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { OptimisationConfig } from "../../../protocol/optimisation/config.ts";
import type { EditForecast } from "../../../protocol/optimisation/report.ts";
import { keptAt } from "../../../protocol/optimisation/threshold.ts";
import { type BranchUse, branchUse } from "./branch-use.ts";
import { ChangeLog } from "./change-log.ts";
import { editPrice, priceOfDelay, requestsUntil } from "./edit-price.ts";
import { type Cost, cacheLifetimeMs, cachePrices } from "./prices.ts";

/** A proposed change to earlier context. */
export interface ProposedChange {
  /** Tokens that each later request saves. */
  readonly freedTokens: number;
  /**
   * Tokens that the last request had after the first change, up to its end or to the first place that changes anyway; they
   * must be cached again. 0 if the change comes after an unavoidable one, such as a compaction.
   */
  readonly suffixTokens: number;
  /** The context exceeds a part's maximum, so a small batch is enough. Default false. */
  readonly isAboveMax?: boolean;
}

export interface CacheDecision {
  readonly act: boolean;
  readonly why: "saves" | "cold" | "no_price" | "too_small" | "too_dear";
  readonly forecast: EditForecast;
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
  /** Attributes the cache loss by changes to these entries to a part. */
  changed(part: string, entryIds: readonly string[]): void;
  /** Declares text at the end of the current request that later requests do not have; no cache mark is placed on it. */
  passing(text: string): void;
  readonly changes: ChangeLog;
}

/** By how much the savings must exceed the cost. */
const margin = 1.2;
const maxShareOfWindow = 0.15;
/** Even above the maximum size, the cache is not lost for less. Tokens. */
const minAboveMaxTokens = 1_000;

export interface RuleFacts {
  readonly isCold: boolean;
  /** The service reports neither reads nor writes of a cache, so none is lost. */
  readonly isUncached: boolean;
  readonly cost: Cost | undefined;
  readonly minBatchTokens: number;
  /** Requests of the current prompt or session that are expected. */
  readonly expectedRequests: number;
  /** The next request without the change, and by how much each further one is larger. */
  readonly requestTokens: number;
  readonly growthTokens: number;
  /** The size at which the context is compacted. `undefined`: never. */
  readonly compactsAt: number | undefined;
}

/**
 * Acts only if the tokens that are freed, read in the requests that are left until the next compaction, cost more than 1.2
 * times the cache that is lost, in batches of a minimum size; or if the cache is cold. Without a cache or a price for cached tokens,
 * only the batch size counts. The change delays the next compaction: the requests that this adds are longer than those after
 * the compaction, which the change has to pay for too. The forecast has what they save, as if no compaction came.
 */
export function decideByRule(change: ProposedChange, facts: RuleFacts): CacheDecision {
  const { freedTokens, suffixTokens, isAboveMax = false } = change;
  const { isCold, isUncached, cost, minBatchTokens, expectedRequests, requestTokens, growthTokens, compactsAt } = facts;
  const missedTokens = isCold || isUncached ? 0 : suffixTokens;
  const priced = (requests: number) =>
    editPrice({ freedTokens, missedTokens, requestTokens, growthTokens, requests, cost });
  const comes = requestsUntil(compactsAt, Math.max(0, requestTokens - freedTokens), growthTokens);
  const requests = Number.isFinite(comes) ? comes : expectedRequests;
  const { lossUsd, gainUsd } = priced(requests);
  const forecast: EditForecast = { missedTokens, missedUsd: lossUsd, requests, savedUsd: gainUsd };
  const decided = (act: boolean, why: CacheDecision["why"]): CacheDecision => ({ act, why, forecast });
  if (freedTokens <= 0) return decided(false, "too_small");
  if (isAboveMax && freedTokens < minAboveMaxTokens) return decided(false, "too_small");
  if (isCold) return decided(true, "cold");
  if (!isAboveMax && freedTokens < minBatchTokens) return decided(false, "too_small");
  if (cachePrices(cost, requestTokens) === undefined) return decided(true, "no_price");
  const left = Math.min(expectedRequests, requestsUntil(compactsAt, requestTokens, growthTokens));
  const added = Math.min(expectedRequests, requests) - left;
  // A context that does not grow is never compacted, so there is no price after a compaction.
  const delayUsd = added === 0 ? 0 : added * priceOfLonger(change, facts);
  const saves = priced(left).gainUsd - delayUsd > margin * lossUsd;
  return decided(saves, saves ? "saves" : "too_dear");
}

/** USD for each request that a change adds before the next compaction. */
function priceOfLonger({ freedTokens }: ProposedChange, { cost, compactsAt, growthTokens }: RuleFacts): number {
  if (cost === undefined || compactsAt === undefined) return 0;
  return priceOfDelay({ compactsAt, keptTokens: keptAt(compactsAt), growthTokens }, freedTokens, cost);
}

export interface CacheRuleNeeds {
  readonly config: () => Pick<OptimisationConfig, "cache" | "masking">;
  /** Tokens of the next request. */
  readonly nextTokens: (ctx: ExtensionContext) => number;
  /** The size at which the context is compacted. `undefined`: unknown. */
  readonly compactsAt: (ctx: ExtensionContext) => number | undefined;
}

/** The rule for one session. Its input is in the session's file, so that it survives a restart of pi. */
export function createCacheRule({ config, nextTokens, compactsAt }: CacheRuleNeeds): CacheRule {
  const changes = new ChangeLog();
  const minBatchTokens = ({ model }: ExtensionContext): number => {
    const window = model?.contextWindow ?? Number.POSITIVE_INFINITY;
    return Math.min(config().cache.minBatchTokens, Math.floor(maxShareOfWindow * window));
  };
  return {
    changes,
    minBatchTokens,
    isCold: (ctx) => isColdFor(branchUse(ctx.sessionManager), ctx),
    changed: (part, entryIds) => changes.add(part, entryIds),
    passing: (text) => changes.passing(text),
    decide: (change, ctx) => {
      const use = branchUse(ctx.sessionManager);
      const { expectedRequests } = config().masking;
      return decideByRule(change, {
        isCold: isColdFor(use, ctx),
        isUncached: use.isUncached,
        cost: ctx.model?.cost,
        minBatchTokens: minBatchTokens(ctx),
        expectedRequests: expectedRequests === "auto" ? use.requestsPerPrompt : expectedRequests,
        requestTokens: nextTokens(ctx),
        growthTokens: use.growthTokens ?? 0,
        compactsAt: compactsAt(ctx),
      });
    },
  };
}

/** Without a known lifetime, a cache counts as warm. */
function isColdFor({ models, usedAt, isBroken }: BranchUse, { model }: ExtensionContext): boolean {
  if (models.length === 0 || isBroken) return true;
  if (model !== undefined && !models.includes(`${model.provider}/${model.id}`)) return true;
  return Date.now() - usedAt > (cacheLifetimeMs(model) ?? Number.POSITIVE_INFINITY);
}
