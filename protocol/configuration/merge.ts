import { isRecord } from "../objects.ts";
export type Fields = Readonly<Record<string, unknown>>;

/** Merges one layer over another: objects are merged, other values replaced. `undefined` has no effect. */
export function mergedFields(below: Fields, above: Fields): Fields {
  const merged: Record<string, unknown> = { ...below };
  for (const [key, value] of Object.entries(above)) {
    if (value === undefined) continue;
    const under = Object.hasOwn(below, key) ? below[key] : undefined;
    const both = isRecord(under) && isRecord(value) ? mergedFields(under, value) : value;
    Object.defineProperty(merged, key, { value: both, enumerable: true, configurable: true, writable: true });
  }
  return merged;
}

/** Merges layers; later ones override earlier ones. */
export function mergedLayers<T extends object>(layers: readonly (T | undefined)[]): T {
  let merged: Fields = {};
  for (const layer of layers) if (layer !== undefined) merged = mergedFields(merged, layer as Fields);
  return merged as T;
}
