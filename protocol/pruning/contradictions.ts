import { type Mistake, type Place, placeName } from "../configuration/mistakes.ts";
import type { OptimisationConfig } from "../optimisation/config.ts";
import { shareOf } from "../optimisation/threshold.ts";
import type { PruningConfig } from "./config.ts";
import type { PruningLimit } from "./options.ts";

type Limit = PruningLimit | "auto";
type Compaction = OptimisationConfig["compaction"];

/** A limit that can be compared without a window: two shares, or two numbers of tokens. */
interface Measure {
  readonly unit: "share" | "tokens";
  readonly value: number;
}

const root = "pruning";
const mostBlocks = 0.5;

/**
 * Contradictions in a complete configuration, and between it and the threshold of compaction. Shares and tokens are
 * not compared here: that needs a model's window, and then the lower limit yields.
 */
export function pruningContradictions(pruning: PruningConfig, compaction: Compaction): Mistake[] {
  if (!pruning.enabled) return [];
  return [
    ...limitMistakes(undefined, pruning, compaction),
    ...Object.keys(pruning.models).flatMap((model) => limitMistakes(model, pruning, compaction)),
    ...thresholdsOfModels(pruning, compaction),
    ...tooManyBlocks(pruning),
  ];
}

function limitMistakes(model: string | undefined, pruning: PruningConfig, compaction: Compaction): Mistake[] {
  const own = model === undefined ? {} : (pruning.models[model] ?? {});
  if (own.enabled === false) return [];
  const max = own.maxContext ?? pruning.maxContext;
  const min = own.minContext ?? pruning.minContext;
  // Limits that the model does not set itself were already checked.
  if (model !== undefined && own.maxContext === undefined && own.minContext === undefined) return [];
  const at = (key: "maxContext" | "minContext"): Place =>
    model === undefined || own[key] === undefined ? [root, key] : [root, "models", model, key];
  return [
    ...notBelow(at("minContext"), min, placeName(at("maxContext")), measureOf(max)),
    ...(model !== undefined && own.maxContext === undefined
      ? []
      : aboveThreshold(at("maxContext"), max, model, compaction)),
  ];
}

/** A limit for all models may be too high for a model whose context is compacted earlier. */
function thresholdsOfModels({ maxContext, models }: PruningConfig, compaction: Compaction): Mistake[] {
  return Object.keys(compaction.models ?? {})
    .filter((model) => models[model]?.maxContext === undefined && models[model]?.enabled !== false)
    .flatMap((model) => aboveThreshold([root, "maxContext"], maxContext, model, compaction));
}

function aboveThreshold(place: Place, max: Limit, model: string | undefined, compaction: Compaction): Mistake[] {
  if (!compaction.enabled) return [];
  const own = model === undefined ? {} : (compaction.models?.[model] ?? {});
  const key = (name: string): string =>
    own[name as keyof typeof own] === undefined
      ? `optimisation.compaction.${name}`
      : `optimisation.compaction.models["${model}"].${name}`;
  const share: Measure = { unit: "share", value: shareOf(own.thresholdPercent ?? compaction.thresholdPercent) };
  const tokens = own.maxContextTokens === undefined ? compaction.maxContextTokens : own.maxContextTokens;
  return [
    ...notBelow(place, max, key("thresholdPercent"), share),
    ...(tokens === null ? [] : notBelow(place, max, key("maxContextTokens"), { unit: "tokens", value: tokens })),
  ];
}

function notBelow(place: Place, limit: Limit, bound: string, other: Measure | undefined): Mistake[] {
  const own = measureOf(limit);
  if (own === undefined || other === undefined || own.unit !== other.unit || own.value < other.value) return [];
  return [{ place, why: `${JSON.stringify(limit)} is not below ${bound}, which is ${other.value}` }];
}

function tooManyBlocks({ blocks }: PruningConfig): Mistake[] {
  const own = measureOf(blocks.maxTokens);
  if (own === undefined || own.unit === "tokens" || own.value <= mostBlocks) return [];
  return [
    { place: [root, "blocks", "maxTokens"], why: `${JSON.stringify(blocks.maxTokens)} is above half the window` },
  ];
}

function measureOf(limit: Limit): Measure | undefined {
  if (limit === "auto") return undefined;
  if (typeof limit === "string") return { unit: "share", value: Number.parseFloat(limit) / 100 };
  return limit <= 1 ? { unit: "share", value: limit } : { unit: "tokens", value: limit };
}
