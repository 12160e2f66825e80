import type { Mistake, Place } from "./mistakes.ts";

/**
 * Options with every value present. Lists and tables by name (models, tools) are unchanged, because they have no fixed
 * keys.
 */
export type Whole<T> = T extends readonly unknown[]
  ? T
  : T extends object
    ? { readonly [K in keyof T]-?: WholeValue<T[K]> }
    : T;
type WholeValue<T> = string extends keyof Exclude<T, undefined> ? Exclude<T, undefined> : Whole<Exclude<T, undefined>>;

/** Maximum size of a whole configuration as JSON, in bytes; it is part of pi's start configuration. */
export const MAX_CONFIGURATION_BYTES = 128 * 1024;

/** Returns a mistake if a whole configuration is too large. */
export function tooLarge(place: Place, config: object): Mistake[] {
  const bytes = new TextEncoder().encode(JSON.stringify(config)).length;
  if (bytes <= MAX_CONFIGURATION_BYTES) return [];
  return [{ place, why: `its ${bytes} bytes of JSON exceed the limit of ${MAX_CONFIGURATION_BYTES}` }];
}
