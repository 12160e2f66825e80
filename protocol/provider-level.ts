/**
 * How much a subscriber receives about requests to the provider, from nothing to everything. Each level includes the
 * previous ones.
 */
export const providerLevels = ["off", "summary", "messages", "payload"] as const;
export type ProviderLevel = (typeof providerLevels)[number];

/** Whether a level includes another one. */
export function covers(level: ProviderLevel, wanted: ProviderLevel): boolean {
  return providerLevels.indexOf(level) >= providerLevels.indexOf(wanted);
}

/** The highest of the given levels; `off` if there are none. */
export function highestLevel(levels: Iterable<ProviderLevel>): ProviderLevel {
  let highest: ProviderLevel = "off";
  for (const level of levels) if (covers(level, highest)) highest = level;
  return highest;
}
