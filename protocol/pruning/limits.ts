import type { OptimisationConfig } from "../optimisation/config.ts";
import { thresholdOf, type WindowedModel } from "../optimisation/threshold.ts";
import type { PruningConfig } from "./config.ts";
import type { PruningLimit } from "./options.ts";

/** The range of estimated tokens of the next request in which the model is reminded. */
export interface PruningLimits {
  readonly window: number;
  readonly max: number;
  readonly min: number;
}

/** Shares of the window, or of a smaller one that has the compaction's threshold at 70 %. */
const auto = { max: 0.8, belowThreshold: 0.1, min: 0.4, belowMax: 0.15, threshold: 0.7 };
const mostBlocks = 0.5;
const leastBlocks = 1_000;

/** A limit in tokens for a window: a share, a percentage, or tokens. */
export function limitTokens(limit: PruningLimit, window: number): number {
  if (typeof limit === "string") return Math.round((Number.parseFloat(limit) / 100) * window);
  return limit <= 1 ? Math.round(limit * window) : limit;
}

/**
 * The limits for a model. If compaction is on, the upper one is always below its threshold; the lower one is never
 * above the upper one. `threshold`: that of a session, which its growth can lower. `undefined`: the model's window is unknown.
 */
export function pruningLimits(
  pruning: PruningConfig,
  compaction: OptimisationConfig["compaction"],
  model: WindowedModel,
  threshold = compaction.enabled ? thresholdOf(compaction, model)?.tokens : undefined,
): PruningLimits | undefined {
  const { contextWindow: window } = model;
  if (!Number.isSafeInteger(window) || window <= 0) return undefined;
  const own = pruning.models[`${model.provider}/${model.id}`] ?? {};
  const givenMax = own.maxContext ?? pruning.maxContext;
  const used = threshold === undefined ? window : Math.min(window, threshold / auto.threshold);
  const autoMax = threshold === undefined ? auto.max * window : threshold - auto.belowThreshold * used;
  const wantedMax = givenMax === "auto" ? Math.max(0, Math.round(autoMax)) : limitTokens(givenMax, window);
  const max = Math.min(wantedMax, threshold === undefined ? window : threshold - 1);
  const givenMin = own.minContext ?? pruning.minContext;
  const autoMin = Math.min(auto.min * used, max - auto.belowMax * used);
  const wantedMin = givenMin === "auto" ? Math.max(0, Math.round(autoMin)) : limitTokens(givenMin, window);
  return { window, max, min: Math.max(0, Math.min(wantedMin, max - 1)) };
}

/** The limit for all blocks together, in tokens: at least 1,000, at most half the window. */
export function blocksLimit({ blocks }: PruningConfig, window: number): number {
  return Math.max(leastBlocks, Math.min(limitTokens(blocks.maxTokens, window), Math.floor(mostBlocks * window)));
}
