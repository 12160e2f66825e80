import { mergedFields, mergedLayers } from "../configuration/merge.ts";
import { defaultPruning, type PruningConfig } from "./config.ts";
import type { PruningOptions } from "./options.ts";

/** Merges layers: later ones win, objects are merged, everything else is replaced, including lists. */
export function mergePruning(...layers: readonly (PruningOptions | undefined)[]): PruningOptions {
  return mergedLayers(layers);
}

/**
 * Returns options with every value. Pruning is on only if a layer sets `enabled`, not because another option is set.
 */
export function resolvePruning(given: PruningOptions): PruningConfig {
  return mergedFields(defaultPruning, given) as PruningConfig;
}
