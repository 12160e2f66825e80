import { mergedFields, mergedLayers } from "../configuration/merge.ts";
import { defaultOptimisation, type OptimisationConfig, type OptimisationPart } from "./config.ts";
import type { OptimisationOptions } from "./options.ts";

/** Brings layers together: later ones win, objects are merged, everything else is replaced. */
export function mergeOptimisation(...layers: readonly (OptimisationOptions | undefined)[]): OptimisationOptions {
  return mergedLayers(layers);
}

/** Every knob with its value. A part is on when it says so, or when it says nothing of it and anything else is given. */
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
