import type { Mistake, Place } from "./mistakes.ts";

/** Options with every knob filled in. Lists stay, and so do tables by names (models, tools): they have no keys that could be. */
export type Whole<T> = T extends readonly unknown[]
  ? T
  : T extends object
    ? { readonly [K in keyof T]-?: WholeValue<T[K]> }
    : T;
type WholeValue<T> = string extends keyof Exclude<T, undefined> ? Exclude<T, undefined> : Whole<Exclude<T, undefined>>;

/** The bytes of a whole configuration as JSON: it goes to pi with what else a pi is started with. */
export const MAX_CONFIGURATION_BYTES = 128 * 1024;

/** What is wrong with a whole configuration that has grown too large. */
export function tooLarge(place: Place, config: object): Mistake[] {
  const bytes = new TextEncoder().encode(JSON.stringify(config)).length;
  if (bytes <= MAX_CONFIGURATION_BYTES) return [];
  return [{ place, why: `its ${bytes} bytes of JSON are more than ${MAX_CONFIGURATION_BYTES}` }];
}
