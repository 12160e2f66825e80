import type { Mistake } from "../configuration/mistakes.ts";
import { tooLarge } from "../configuration/whole.ts";
import type { OptimisationConfig } from "../optimisation/config.ts";
import type { PruningConfig } from "./config.ts";
import { pruningContradictions } from "./contradictions.ts";
import type { PruningOptions } from "./options.ts";
import { mergePruning, resolvePruning } from "./resolve.ts";
import { pruningMistakes } from "./words.ts";

const place = ["pruning"];

/** The whole configuration that layers come to, and what is wrong with it. */
export interface CheckedPruning {
  /** The layers, one over the other. */
  readonly merged: PruningOptions;
  readonly config: PruningConfig;
  readonly mistakes: readonly Mistake[];
}

/**
 * Brings layers together that are each as their schema says, and looks at what no schema can see: limits that contradict, also
 * the threshold of compaction, and tables that have grown too large.
 */
export function checkedPruning(
  layers: readonly (PruningOptions | undefined)[],
  compaction: OptimisationConfig["compaction"],
): CheckedPruning {
  const merged = mergePruning(...layers);
  const config = resolvePruning(merged);
  const mistakes = [
    ...pruningMistakes(config),
    ...pruningContradictions(config, compaction),
    ...tooLarge(place, config),
  ];
  return { merged, config, mistakes };
}
