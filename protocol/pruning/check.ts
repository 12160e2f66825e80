import type { Mistake } from "../configuration/mistakes.ts";
import { tooLarge } from "../configuration/whole.ts";
import type { OptimisationConfig } from "../optimisation/config.ts";
import type { PruningConfig } from "./config.ts";
import { pruningContradictions } from "./contradictions.ts";
import type { PruningOptions } from "./options.ts";
import { mergePruning, resolvePruning } from "./resolve.ts";
import { pruningMistakes } from "./words.ts";

const place = ["pruning"];

/** The merged configuration of all layers, and its mistakes. */
export interface CheckedPruning {
  /** The merged layers. */
  readonly merged: PruningOptions;
  readonly config: PruningConfig;
  readonly mistakes: readonly Mistake[];
}

/**
 * Merges layers that each match the schema, and makes the checks that schemas cannot make: contradictory limits,
 * including the threshold of compaction, and tables that have become too large.
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
