import type { OptimisationConfig } from "./config.ts";

/** What of a model matters here. */
export interface WindowedModel {
  readonly provider: string;
  readonly id: string;
  readonly contextWindow: number;
}

export interface Threshold {
  readonly window: number;
  /** Above so many tokens the context is compacted. */
  readonly tokens: number;
  /** pi's `compaction.reserveTokens` for it. */
  readonly reserveTokens: number;
  /** The newest messages of so many tokens stay as they are. */
  readonly keepRecentTokens: number;
}

const leastReserve = 1_024;
const mostKept = 20_000;
const keptShare = 0.25;

/** `undefined`: the model has no window that is known, or none that leaves anything above the reserve. */
export function thresholdOf(config: OptimisationConfig["compaction"], model: WindowedModel): Threshold | undefined {
  const window = model.contextWindow;
  if (!Number.isSafeInteger(window) || window <= leastReserve) return undefined;
  const own = config.models?.[`${model.provider}/${model.id}`] ?? {};
  const percent = own.thresholdPercent ?? config.thresholdPercent;
  const most = own.maxContextTokens === undefined ? config.maxContextTokens : own.maxContextTokens;
  const byShare = window - Math.max(leastReserve, Math.round(window * (1 - percent)));
  const tokens = Math.min(byShare, most ?? byShare);
  return {
    window,
    tokens,
    reserveTokens: window - tokens,
    keepRecentTokens: Math.min(mostKept, Math.floor(keptShare * tokens)),
  };
}
