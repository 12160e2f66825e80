import type { OptimisationConfig } from "./config.ts";

/** The relevant fields of a model. */
export interface WindowedModel {
  readonly provider: string;
  readonly id: string;
  readonly contextWindow: number;
}

export interface Threshold {
  readonly window: number;
  /** Above this many tokens the context is compacted. */
  readonly tokens: number;
  /** pi's `compaction.reserveTokens` for this threshold. */
  readonly reserveTokens: number;
  /** The newest messages, up to this many tokens, are not summarised. */
  readonly keepRecentTokens: number;
}

const leastReserve = 1_024;
const mostKept = 20_000;
const keptShare = 0.25;

/** `undefined`: the model's window is unknown, or too small for the reserve. */
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
