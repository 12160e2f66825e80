import { defaultOptimisation, type OptimisationConfig, type OptimisationPart } from "./config.ts";
import type { OptimisationOptions } from "./options.ts";

type Fields = Readonly<Record<string, unknown>>;

/** Brings layers together: later ones win, objects are merged, everything else is replaced. */
export function mergeOptimisation(...layers: readonly (OptimisationOptions | undefined)[]): OptimisationOptions {
  let merged: Fields = {};
  for (const layer of layers) if (layer !== undefined) merged = mergedFields(merged, layer);
  return merged as OptimisationOptions;
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

function mergedFields(below: Fields, above: Fields): Fields {
  const merged: Record<string, unknown> = { ...below };
  for (const [key, value] of Object.entries(above)) {
    if (value === undefined) continue;
    const under = Object.hasOwn(below, key) ? below[key] : undefined;
    const both = isFields(under) && isFields(value) ? mergedFields(under, value) : value;
    Object.defineProperty(merged, key, { value: both, enumerable: true, configurable: true, writable: true });
  }
  return merged;
}

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
