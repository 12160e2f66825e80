import { mergedFields, mergedLayers } from "../configuration/merge.ts";
import { defaultOptimisation, type OptimisationConfig, type OptimisationPart } from "./config.ts";
import type { OptimisationOptions } from "./options.ts";

/** Merges layers: later ones win, objects are merged, everything else is replaced. */
export function mergeOptimisation(...layers: readonly (OptimisationOptions | undefined)[]): OptimisationOptions {
  return mergedLayers(layers);
}

/**
 * Returns options with every value. A part is on if it says so, or if `enabled` is absent and any other option of it
 * is set.
 */
export function resolveOptimisation(given: OptimisationOptions): OptimisationConfig {
  const parts = Object.keys(defaultOptimisation) as OptimisationPart[];
  const resolved = parts.map((part) => {
    const knobs = given[part];
    if (knobs === undefined) return [part, defaultOptimisation[part]];
    const enabled = knobs.enabled ?? Object.keys(knobs).length > 0;
    return [part, { ...mergedFields(defaultOptimisation[part], knobs), enabled }];
  });
  return Object.fromEntries(resolved) as OptimisationConfig;
}

/** Whether any part is on. */
export function isAnyOn(config: OptimisationConfig): boolean {
  return Object.values(config).some(({ enabled }) => enabled);
}
