import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { OptimisationConfig } from "../../../protocol/optimisation/config.ts";
import {
  belowTier,
  givenFor,
  isAutomatic,
  type Threshold,
  thresholdAt,
  thresholdOf,
  tiersOf,
} from "../../../protocol/optimisation/threshold.ts";
import { branchUse } from "../cache/branch-use.ts";
import { type Cycle, pricePerRequest } from "../cache/edit-price.ts";

type Config = OptimisationConfig["compaction"];

/** pi's own `compaction.reserveTokens`, unless its settings have another. */
const reserveOfPi = 16_384;
/** A lower tier must make requests cheaper by this factor, because a smaller context forgets more, which has no price here. */
const tierMargin = 1.5;
/** A context smaller than this is not compacted because of its price. Tokens. */
const leastTokens = 16_000;

/** The size at which a session's context is compacted: by the part, or else by pi. `undefined`: the window is unknown. */
export function compactsAt(config: Config, ctx: ExtensionContext): number | undefined {
  const own = config.enabled && config.route !== "off" ? sessionThreshold(config, ctx) : undefined;
  const window = ctx.model?.contextWindow ?? 0;
  return own?.tokens ?? (window > reserveOfPi ? window - reserveOfPi : undefined);
}

/**
 * The threshold for the session's model; automatically below a lower price tier if requests are cheaper then, summaries
 * included. `undefined`: the model's window is unknown, or too small for the reserve.
 */
export function sessionThreshold(config: Config, { model, sessionManager }: ExtensionContext): Threshold | undefined {
  if (model === undefined) return undefined;
  const turnTokens = branchUse(sessionManager).growthTokens;
  const usual = thresholdOf(config, model, turnTokens);
  if (usual === undefined || turnTokens === undefined || !isAutomatic(givenFor(config, model))) return usual;
  const priceAt = ({ tokens, keepRecentTokens }: Threshold): number => {
    const cycle: Cycle = { compactsAt: tokens, keptTokens: keepRecentTokens, growthTokens: turnTokens };
    return pricePerRequest(cycle, model.cost);
  };
  const lower = tiersOf(model)
    .map((tier) => belowTier(tier, turnTokens))
    .filter((tokens) => tokens >= leastTokens && tokens < usual.tokens)
    .toSorted((a, b) => b - a)
    .map((tokens) => thresholdAt(usual.window, tokens));
  return lower.reduce((best, one) => (priceAt(best) > tierMargin * priceAt(one) ? one : best), usual);
}
