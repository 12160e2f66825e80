import type { OptimisationConfig } from "./config.ts";

type Compaction = OptimisationConfig["compaction"];

/** The relevant fields of a model. */
export interface WindowedModel {
  readonly provider: string;
  readonly id: string;
  readonly contextWindow: number;
  /** Prices above a size, which count for a whole request. */
  readonly cost?: { readonly tiers?: readonly { readonly inputTokensAbove: number }[] };
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
const autoShare = 0.7;
/** From there on, a summary costs less than reading more in each request. */
const autoTokens = 100_000;
/** Dearer tiers that begin at this size or above are always avoided. */
const leastTier = 64_000;
/** Growth of a usual turn, if it is unknown, and its maximum as a share of a tier. */
const usualTurn = 4_000;
const maxTurnShare = 0.1;

/** `turnTokens`: by which a usual turn grows the context. `undefined`: the model's window is unknown, or too small for the reserve. */
export function thresholdOf(config: Compaction, model: WindowedModel, turnTokens = usualTurn): Threshold | undefined {
  const window = model.contextWindow;
  if (!Number.isSafeInteger(window) || window <= leastReserve) return undefined;
  const given = givenFor(config, model);
  const byShare = window - Math.max(leastReserve, Math.round(window * (1 - shareOf(given.thresholdPercent))));
  const tiers = tiersOf(model).filter((tier) => tier >= leastTier);
  const most = isAutomatic(given)
    ? Math.min(autoTokens, ...tiers.map((tier) => belowTier(tier, turnTokens)))
    : given.maxContextTokens;
  return thresholdAt(window, Math.min(byShare, most ?? byShare));
}

/** The values for a model. */
export function givenFor(
  { models, thresholdPercent, maxContextTokens }: Compaction,
  { provider, id }: Pick<WindowedModel, "provider" | "id">,
): Pick<Compaction, "thresholdPercent" | "maxContextTokens"> {
  return { thresholdPercent, maxContextTokens, ...models?.[`${provider}/${id}`] };
}

/** Whether neither value is given, so that the prices decide. */
export function isAutomatic({
  thresholdPercent,
  maxContextTokens,
}: Pick<Compaction, "thresholdPercent" | "maxContextTokens">): boolean {
  return thresholdPercent === "auto" && maxContextTokens === null;
}

export function shareOf(thresholdPercent: Compaction["thresholdPercent"]): number {
  return thresholdPercent === "auto" ? autoShare : thresholdPercent;
}

/** The threshold of a window at a number of tokens. */
export function thresholdAt(window: number, tokens: number): Threshold {
  return {
    window,
    tokens,
    reserveTokens: window - tokens,
    keepRecentTokens: keptAt(tokens),
  };
}

/** The tokens of the newest messages that a compaction at a size keeps. */
export function keptAt(tokens: number): number {
  return Math.min(mostKept, Math.floor(keptShare * tokens));
}

/** The sizes above which a model's requests are dearer. */
export function tiersOf({ cost }: Pick<WindowedModel, "cost">): readonly number[] {
  return (cost?.tiers ?? []).map(({ inputTokensAbove }) => inputTokensAbove);
}

/** The threshold at which a usual turn stays below a tier. */
export function belowTier(tier: number, turnTokens: number): number {
  return Math.floor(tier - Math.min(turnTokens, maxTurnShare * tier));
}
