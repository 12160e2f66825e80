import { mergedFields, mergedLayers } from "../configuration/merge.ts";
import { defaultPruning, type PruningConfig } from "./config.ts";
import type { PruningOptions } from "./options.ts";

/** Brings layers together: later ones win, objects are merged, everything else is replaced, lists too. */
export function mergePruning(...layers: readonly (PruningOptions | undefined)[]): PruningOptions {
  return mergedLayers(layers);
}

/** Every knob with its value. It is on when a layer says so, and not because another knob is given. */
export function resolvePruning(given: PruningOptions): PruningConfig {
  return mergedFields(defaultPruning, given) as PruningConfig;
}
