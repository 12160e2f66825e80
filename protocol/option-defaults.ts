import { isRecord } from "./objects.ts";
import { defaultOptimisation } from "./optimisation/config.ts";
import { defaultPruning } from "./pruning/config.ts";

/**
 * Each option of `optimisation` and `pruning` by its path, and its default as JSON: the value if no layer of the
 * configuration sets it. The schemas do not declare these defaults: a client that sent them would override the layers
 * below the call.
 */
export function optionDefaults(): readonly (readonly [string, string])[] {
  return [...within("optimisation", defaultOptimisation), ...within("pruning", defaultPruning)];
}

function within(path: string, value: unknown): readonly (readonly [string, string])[] {
  if (!isRecord(value) || Object.keys(value).length === 0) return [[path, JSON.stringify(value)]];
  return Object.entries(value).flatMap(([name, inner]) => within(`${path}.${name}`, inner));
}
